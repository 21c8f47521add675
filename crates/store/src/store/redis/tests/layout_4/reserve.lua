-- Counts at least so many bytes towards the owner's quota, before content is sent.
local owner, id, bytes = ARGV[6], ARGV[7], tonumber(ARGV[8])
local max_bytes, ttl = tonumber(ARGV[9]), tonumber(ARGV[10])
local max_reservations = tonumber(ARGV[11])
local entry = KEYS[2]
local index = index_of(env, owner)

prune_held(index, batch)
if prune(index, batch) == batch then
  save_index(index)
  return { 'again', index.external }
end
local until_ = tonumber(redis.call('ZSCORE', index.uploads, id) or '0')
if until_ == 0 and redis.call('ZCARD', index.uploads) >= max_reservations then
  save_index(index)
  return { 'reservations', index.external }
end
local own = release(index, index.uploads, id)
bytes = math.max(bytes, own)
if make_room(index, bytes, max_bytes, batch) then
  if own > 0 then
    hold(index, index.uploads, id, own, until_)
  end
  save_index(index)
  return { 'again', index.external }
end
local used, past = used_bytes(index), 0
-- The commit removes earlier revisions if the quota requires it.
for _, earlier in ipairs(earlier_revisions(redis.call('HGET', entry, 'past'))) do
  past = past + earlier.size
end
if used + bytes - past > max_bytes then
  if own > 0 then
    hold(index, index.uploads, id, own, until_)
  end
  save_index(index)
  return { 'bytes', used, index.external }
end
hold(index, index.uploads, id, bytes, math.max(until_, env.now + ttl))
save_index(index)
return { 'done', own, index.external }
