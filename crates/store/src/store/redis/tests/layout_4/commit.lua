-- Commits content under its URI: entry, index, quota and change, all or nothing.
local owner, uri, entry, id = ARGV[6], ARGV[7], KEYS[2], ARGV[8]
local meta, blocks, size = ARGV[9], ARGV[10], tonumber(ARGV[11])
local ttl = tonumber(ARGV[12]) -- in milliseconds; nil keeps the predecessor's expiry
local predecessor = ARGV[13] -- the ID of its content; '' accepts any or none
local max_bytes, max_resources = tonumber(ARGV[14]), tonumber(ARGV[15])
local grace = tonumber(ARGV[16])
local stored_bytes = tonumber(ARGV[17]) -- the length of the content as stored
local rest = ARGV[18] -- the last part, if Redis does not have it yet, or ''
local revisions = tonumber(ARGV[19]) -- how many to keep, including this one
local counted = tonumber(ARGV[20]) -- what this revision counts
local reservation = ARGV[21] -- the ID of what the upload counts
local outlives = ARGV[22] == '1' -- whether it stays if the commit is refused
-- A revision that another store had comes with its number and its times.
local restored = ARGV[23] and { revision = tonumber(ARGV[23]), created = tonumber(ARGV[24]),
  updated = tonumber(ARGV[25]), expires = tonumber(ARGV[26]) }
local parts = blob_keys(env, id)
local index = index_of(env, owner)

prune_held(index, batch)
if prune(index, batch) == batch then
  save_index(index)
  return { 'again', index.external }
end

local fields = redis.call('HMGET', entry, 'revision', 'blob', 'created', 'expires', 'size', 'past',
  'counted', 'updated')
local old = fields[2]
if predecessor ~= '' and old ~= predecessor then
  save_index(index)
  return { 'changed', index.external }
end

-- From here on the content counts for the resource, not as an upload.
local until_ = tonumber(redis.call('ZSCORE', index.uploads, reservation) or '0')
local reserved = release(index, index.uploads, reservation)

-- Refused content is removed.
local function refuse(reason, number)
  if outlives and until_ > 0 then
    hold(index, index.uploads, reservation, reserved, until_)
  end
  save_index(index)
  remove_blob(env, id)
  return { reason, number, index.external }
end
if restored and old
  and (tonumber(fields[1]) >= restored.revision or tonumber(fields[8]) > restored.updated) then
  return refuse('later', 0)
end
local length = #rest
for _, key in ipairs(parts) do
  length = length + redis.call('STRLEN', key)
end
if length ~= stored_bytes then
  return refuse('lost', 0)
end
if make_room(index, counted, max_bytes, batch) then
  if until_ > 0 then
    hold(index, index.uploads, reservation, reserved, until_)
  end
  save_index(index)
  return { 'again', index.external }
end
local used = used_bytes(index)
-- Earlier revisions are removed, oldest first, if the quota requires it.
local past, discarded, remaining = earlier_revisions(fields[6]), {}, used
while remaining + counted > max_bytes and #past > 0 do
  remaining = remaining - past[1].size
  discarded[#discarded + 1] = table.remove(past, 1)
end
if remaining + counted > max_bytes then
  return refuse('bytes', used)
end
local listed = redis.call('ZSCORE', index.names, uri)
local count = redis.call('ZCARD', index.names)
if not listed and count >= max_resources then
  return refuse('count', count)
end

if rest ~= '' then
  redis.call('SET', parts[#parts], rest)
end
if old then
  local earlier = { revision = fields[1], id = old, size = tonumber(fields[7] or fields[5]) }
  redis.call('HDEL', entry, 'past')
  redis.call('RENAME', entry, past_key(index, uri, earlier.revision))
  past[#past + 1] = earlier
end
for _, earlier in ipairs(discarded) do
  discard(index, uri, earlier)
end
while #past >= revisions do
  drop(index, uri, table.remove(past, 1), grace)
end
local revision = tonumber(fields[1] or '0') + 1
local created = predecessor ~= '' and tonumber(fields[3]) or env.now
local updated = env.now
local expires = ttl and env.now + ttl or tonumber(fields[4])
if restored then
  revision, created = restored.revision, restored.created
  updated, expires = restored.updated, restored.expires
end
-- Redis removes a key one millisecond after the time in PEXPIREAT.
local expire_at = digits(math.max(expires - 1, env.now + 1))
redis.call('HSET', entry, 'meta', meta, 'blocks', blocks, 'blob', id, 'size', digits(size),
  'revision', digits(revision), 'created', digits(created), 'updated', digits(updated),
  'expires', digits(expires), 'counted', digits(counted))
redis.call('PEXPIREAT', entry, expire_at)
expire_blob(env, id, expire_at)
-- All revisions expire together.
local total_size, past_field = counted, {}
for _, earlier in ipairs(past) do
  total_size = total_size + earlier.size
  past_field[#past_field + 1] = earlier.revision .. ':' .. earlier.id .. ':' .. digits(earlier.size)
  redis.call('PEXPIREAT', past_key(index, uri, earlier.revision), expire_at)
  expire_blob(env, earlier.id, expire_at)
end
if #past > 0 then
  redis.call('HSET', entry, 'past', table.concat(past_field, ' '))
end
local before = tonumber(redis.call('HGET', index.sizes, uri) or '0')
redis.call('ZADD', index.names, 0, uri)
redis.call('ZADD', index.expiries, digits(expires), uri)
redis.call('HSET', index.sizes, uri, digits(total_size))
redis.call('HINCRBY', index.sizes, '', digits(total_size - before))
save_index(index)
publish(index, old and 'updated' or 'created', uri, expires - env.now)
return { 'done', revision, created, updated, expires, old and 1 or 0, index.external }
