-- Counts an upload towards its owner's quota, before its content is sent.
local owner, id, bytes = ARGV[6], ARGV[7], tonumber(ARGV[8])
local max_bytes, ttl = tonumber(ARGV[9]), tonumber(ARGV[10])
local entry = KEYS[2]
local index = index_of(env, owner)

prune_held(index, batch)
if prune(index, batch) == batch then
  save_index(index)
  return { 'again' }
end
local own = release(index, index.uploads, id)
make_room(index, bytes, max_bytes, batch)
local used, past = used_bytes(index), 0
-- The commit removes earlier revisions if the quota requires it.
for _, earlier in ipairs(earlier_revisions(redis.call('HGET', entry, 'past'))) do
  past = past + earlier.size
end
if used + bytes - past > max_bytes then
  if own > 0 then
    hold(index, index.uploads, id, own, env.now + ttl)
  end
  save_index(index)
  return { 'bytes', used, index.external }
end
hold(index, index.uploads, id, bytes, env.now + ttl)
save_index(index)
return { 'done', index.external }
