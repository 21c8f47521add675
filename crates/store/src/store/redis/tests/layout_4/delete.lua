-- Removes a resource, if it exists.
local owner, uri, entry = ARGV[6], ARGV[7], KEYS[2]
local grace = tonumber(ARGV[8])
local created, revision = ARGV[9], ARGV[10] -- '' accepts any
local index = index_of(env, owner)

prune_held(index, batch)
if prune(index, batch) == batch then
  save_index(index)
  return { 'again', index.external }
end
local fields = redis.call('HMGET', entry, 'blob', 'past', 'counted', 'size', 'created',
  'revision')
local blob = fields[1]
if created ~= '' and (fields[5] ~= created or fields[6] ~= revision) then
  save_index(index)
  return { 'done', 0, index.external }
end
if blob then
  for _, earlier in ipairs(earlier_revisions(fields[2])) do
    drop(index, uri, earlier, grace)
  end
  redis.call('DEL', entry)
  retire(index, blob, tonumber(fields[3] or fields[4]), grace)
  publish(index, 'deleted', uri, 0)
end
if redis.call('ZSCORE', index.names, uri) then
  remove_from_index(index, uri)
end
save_index(index)
return { 'done', blob and 1 or 0, index.external }
