-- Counts at least `bytes` towards the owner's quota, before content is sent. arguments.rs declares
-- the arguments.
bytes, max_bytes, ttl = tonumber(bytes), tonumber(max_bytes), tonumber(ttl)
max_reservations = tonumber(max_reservations)
local entry = KEYS[2]
local index = index_of(env, owner)

prune_held(index, batch)
if prune(index, batch) == batch then
  save_index(index)
  return { 'again', index.external }
end

local ends_at = tonumber(redis.call('ZSCORE', index.uploads, id) or '0')
if ends_at == 0 and redis.call('ZCARD', index.uploads) >= max_reservations then
  save_index(index)
  return { 'reservations', index.external }
end

local own = release(index, index.uploads, id)
bytes = math.max(bytes, own)
if make_room(index, bytes, max_bytes, batch) then
  if own > 0 then
    hold(index, index.uploads, id, own, ends_at)
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
    hold(index, index.uploads, id, own, ends_at)
  end
  save_index(index)
  return { 'bytes', used, index.external }
end

hold(index, index.uploads, id, bytes, math.max(ends_at, env.now + ttl))
save_index(index)
return { 'done', own, index.external }
