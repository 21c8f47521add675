-- Makes content readable under its name: entry, index, quota and change, all
-- or nothing.
local owner, uri, entry, id = ARGV[6], ARGV[7], KEYS[2], ARGV[8]
local meta, blocks, size = ARGV[9], ARGV[10], tonumber(ARGV[11])
local ttl = tonumber(ARGV[12]) -- nil keeps the predecessor's expiry
local predecessor = ARGV[13] -- its content's id, or '' for whatever is there
local most_bytes, most_resources = tonumber(ARGV[14]), tonumber(ARGV[15])
local grace = tonumber(ARGV[16])
local stored = tonumber(ARGV[17]) -- how many bytes of content are kept
local rest = ARGV[18] -- content that comes with the commit, or ''
local revisions = tonumber(ARGV[19]) -- how many are kept, this one included
local blob = env.shard .. 'blob:' .. id
local index = index_of(env, owner)

if prune(index, batch) == batch then
  settle(index)
  return { 'again' }
end

local there = redis.call('HMGET', entry, 'revision', 'blob', 'created', 'expires', 'size', 'past')
local old = there[2]
if predecessor ~= '' and old ~= predecessor then
  settle(index)
  return { 'changed' }
end

-- What is refused leaves nothing.
local function refuse(reason, number)
  settle(index)
  redis.call('UNLINK', blob)
  return { reason, number }
end
if redis.call('STRLEN', blob) + #rest ~= stored then
  return refuse('lost', 0)
end
local used = tonumber(redis.call('HGET', index.sizes, '') or '0')
-- What was gives way to what comes.
local past, dropped, left = past_of(there[6]), {}, used
while left + size > most_bytes and #past > 0 do
  left = left - past[1].size
  dropped[#dropped + 1] = table.remove(past, 1)
end
if left + size > most_bytes then
  return refuse('bytes', used)
end
local listed = redis.call('ZSCORE', index.names, uri)
local count = redis.call('ZCARD', index.names)
if not listed and count >= most_resources then
  return refuse('count', count)
end

if rest ~= '' then
  redis.call('APPEND', blob, rest)
end
if old then
  local earlier = { revision = there[1], id = old, size = tonumber(there[5]) }
  redis.call('HDEL', entry, 'past')
  redis.call('RENAME', entry, past_key(index, uri, earlier.revision))
  past[#past + 1] = earlier
end
while #past >= revisions do
  dropped[#dropped + 1] = table.remove(past, 1)
end
for _, earlier in ipairs(dropped) do
  drop(index, uri, earlier, grace)
end
local revision = tonumber(there[1] or '0') + 1
local created = predecessor ~= '' and tonumber(there[3]) or env.now
local expires = ttl and env.now + ttl or tonumber(there[4])
-- A key goes in the millisecond after the one that is set.
local last = digits(math.max(expires - 1, env.now + 1))
redis.call('HSET', entry, 'meta', meta, 'blocks', blocks, 'blob', id, 'size', digits(size),
  'revision', digits(revision), 'created', digits(created), 'updated', digits(env.now),
  'expires', digits(expires))
redis.call('PEXPIREAT', entry, last)
redis.call('PEXPIREAT', blob, last)
-- All revisions expire together.
local kept, listed_past = size, {}
for _, earlier in ipairs(past) do
  kept = kept + earlier.size
  listed_past[#listed_past + 1] = earlier.revision .. ':' .. earlier.id .. ':' .. digits(earlier.size)
  redis.call('PEXPIREAT', past_key(index, uri, earlier.revision), last)
  redis.call('PEXPIREAT', env.shard .. 'blob:' .. earlier.id, last)
end
if #past > 0 then
  redis.call('HSET', entry, 'past', table.concat(listed_past, ' '))
end
local before = tonumber(redis.call('HGET', index.sizes, uri) or '0')
redis.call('ZADD', index.names, 0, uri)
redis.call('ZADD', index.expiries, digits(expires), uri)
redis.call('HSET', index.sizes, uri, digits(kept))
redis.call('HINCRBY', index.sizes, '', digits(kept - before))
settle(index)
tell(index, old and 'updated' or 'created', uri, expires - env.now)
return { 'done', revision, created, env.now, expires, old and 1 or 0 }
