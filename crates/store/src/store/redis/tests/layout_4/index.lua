-- Shared functions, prepended to each of the other scripts.
-- migrations/0001_resources.lua documents the keys.

-- The index of an owner. `env` has: shard, channel, linger, now.
local function index_of(env, owner)
  return {
    env = env,
    owner = owner,
    names = env.shard .. 'names:' .. owner,
    expiries = env.shard .. 'expiries:' .. owner,
    sizes = env.shard .. 'sizes:' .. owner,
    kept = env.shard .. 'kept:' .. owner,
    uploads = env.shard .. 'uploads:' .. owner,
    due = env.shard .. 'due',
    usage = env.shard .. 'usage',
    external = {},
  }
end

-- The keys of content: `<id>` is in one; `<base>.<count>` is in `<base>`, `<base>.1` and so on.
local function blob_keys(env, id)
  local base, count = string.match(id, '^([^.]+)%.(%d+)$')
  local keys = { env.shard .. 'blob:' .. (base or id) }
  for part = 1, tonumber(count or '1') - 1 do
    keys[part + 1] = env.shard .. 'blob:' .. base .. '.' .. part
  end
  return keys
end

local function remove_blob(env, id)
  for _, key in ipairs(blob_keys(env, id)) do
    redis.call('UNLINK', key)
  end
end

local function expire_blob(env, id, at)
  for _, key in ipairs(blob_keys(env, id)) do
    redis.call('PEXPIREAT', key, at)
  end
end

local function entry_key(index, uri)
  return index.env.shard .. 'entry:' .. index.owner .. ':' .. uri
end

-- Publishes a change: its kind, milliseconds (the remaining life; for an expiry
-- its time since 1970), and the time of the change in microseconds, which makes
-- the message unique.
local function publish(index, kind, uri, millis)
  local now = redis.call('TIME')
  local at = now[1] .. '.' .. now[2]
  local message = kind .. ' ' .. digits(millis) .. ' ' .. at .. ' ' .. index.owner .. ' ' .. uri
  redis.call('PUBLISH', index.env.channel, message)
end

-- Removes a resource from the index.
local function remove_from_index(index, uri)
  redis.call('ZREM', index.names, uri)
  redis.call('ZREM', index.expiries, uri)
  local size = tonumber(redis.call('HGET', index.sizes, uri) or '0')
  redis.call('HDEL', index.sizes, uri)
  -- Not `-size`: for 0 that prints as -0, which Redis does not accept as an integer.
  redis.call('HINCRBY', index.sizes, '', digits(0 - size))
end

-- Besides resources, content in Redis counts while it is kept for reads that have
-- begun, and during its upload. `kept` and `uploads` have the IDs of such content by
-- the time at which Redis removes it; the field '<id>' of `sizes` has what it counts,
-- and the field 'held' the sum. No URI is without a colon, and no ID has one.

-- What uploads of all owners of the shard count: `reserving` has '<owner> <id>' by the time at which
-- the upload no longer counts, the same fields of `reserved` have the bytes, and '' the sum. Both
-- are gone with the last of them.

local function uncount_reserved(env, upload)
  local bytes = redis.call('HGET', env.shard .. 'reserved', upload)
  if not bytes then
    return
  end
  redis.call('ZREM', env.shard .. 'reserving', upload)
  -- Redis removes an empty sorted set itself.
  if redis.call('EXISTS', env.shard .. 'reserving') == 0 then
    redis.call('DEL', env.shard .. 'reserved')
    return
  end
  redis.call('HDEL', env.shard .. 'reserved', upload)
  redis.call('HINCRBY', env.shard .. 'reserved', '', digits(0 - tonumber(bytes)))
end

local function count_reserved(env, upload, bytes, until_)
  local reserving, reserved = env.shard .. 'reserving', env.shard .. 'reserved'
  local before = tonumber(redis.call('HGET', reserved, upload) or '0')
  redis.call('ZADD', reserving, digits(until_), upload)
  redis.call('HSET', reserved, upload, digits(bytes))
  redis.call('HINCRBY', reserved, '', digits(bytes - before))
  local last = tonumber(redis.call('ZREVRANGE', reserving, 0, 0, 'WITHSCORES')[2])
  for _, key in ipairs({ reserving, reserved }) do
    redis.call('PEXPIREAT', key, digits(last))
  end
end

-- Counts content in `list` until that time.
local function hold(index, list, id, bytes, until_)
  local before = tonumber(redis.call('HGET', index.sizes, id) or '0')
  redis.call('ZADD', list, digits(until_), id)
  redis.call('HSET', index.sizes, id, digits(bytes))
  redis.call('HINCRBY', index.sizes, 'held', digits(bytes - before))
  if list == index.uploads then
    count_reserved(index.env, index.owner .. ' ' .. id, bytes, until_)
  end
end

-- Ends the count of content in `list`. Returns what it counted.
local function release(index, list, id)
  -- Nothing is written for content that does not count: after its first write, Redis
  -- lets a script go on without memory.
  if not redis.call('ZSCORE', list, id) then
    return 0
  end
  redis.call('ZREM', list, id)
  local bytes = tonumber(redis.call('HGET', index.sizes, id) or '0')
  redis.call('HDEL', index.sizes, id)
  redis.call('HINCRBY', index.sizes, 'held', digits(0 - bytes))
  if list == index.uploads then
    uncount_reserved(index.env, index.owner .. ' ' .. id)
  end
  return bytes
end

-- Notes for the reply that content outside Redis is removed in so many milliseconds.
local function note_external(index, id, millis)
  if string.sub(id, 1, 2) == 'o-' then
    index.external[#index.external + 1] = digits(millis) .. ' ' .. id
  end
end

-- Ends the count of content that Redis has removed. What it has outside Redis is removed, too.
local function prune_held(index, max)
  for _, list in ipairs({ index.kept, index.uploads }) do
    local gone = redis.call('ZRANGEBYSCORE', list, '-inf', digits(index.env.now), 'LIMIT', 0, max)
    for _, id in ipairs(gone) do
      release(index, list, id)
      note_external(index, id, 0)
    end
  end
  -- Uploads of other owners, too, who may not return.
  local over = redis.call('ZRANGEBYSCORE', index.env.shard .. 'reserving', '-inf',
    digits(index.env.now), 'LIMIT', 0, max)
  for _, upload in ipairs(over) do
    uncount_reserved(index.env, upload)
  end
end

-- What the owner uses of the quota.
local function used_bytes(index)
  local sizes = redis.call('HMGET', index.sizes, '', 'held')
  return tonumber(sizes[1] or '0') + tonumber(sizes[2] or '0')
end

-- Removes kept content, oldest first, until `bytes` more fit, and at most `max`
-- of it. Returns whether more of it is to be removed.
local function make_room(index, bytes, max_bytes, max)
  while used_bytes(index) + bytes > max_bytes do
    local oldest = redis.call('ZRANGE', index.kept, 0, 0)[1]
    if not oldest then
      return false
    end
    if max == 0 then
      return true
    end
    remove_blob(index.env, oldest)
    release(index, index.kept, oldest)
    note_external(index, oldest, 0)
    max = max - 1
  end
  return false
end

-- Removes at most `max` expired resources from the index, publishes their expiry,
-- and returns their number. Only the first script to do so finds them, so each
-- expiry is published once.
local function prune(index, max)
  local expired = redis.call('ZRANGEBYSCORE', index.expiries, '-inf', digits(index.env.now),
    'WITHSCORES', 'LIMIT', 0, max)
  for i = 1, #expired, 2 do
    local uri = expired[i]
    redis.call('DEL', entry_key(index, uri))
    remove_from_index(index, uri)
    publish(index, 'expired', uri, tonumber(expired[i + 1]))
  end
  return #expired / 2
end

-- Updates the shard's total usage by the difference between the owner's current
-- usage and the usage it was last counted with. So an index that expired natively
-- is subtracted at the next update of that owner.
local function update_usage(index)
  local resources = redis.call('ZCARD', index.names)
  local bytes = tonumber(redis.call('HGET', index.sizes, '') or '0')
  local counted = redis.call('HMGET', index.usage, index.owner, '*')
  local function read(usage)
    local count, size = string.match(usage or '0 0', '^(%d+) (%d+)$')
    return tonumber(count), tonumber(size)
  end
  local own_resources, own_bytes = read(counted[1])
  local all_resources, all_bytes = read(counted[2])
  all_resources = all_resources - own_resources + resources
  all_bytes = all_bytes - own_bytes + bytes
  if all_resources <= 0 then
    redis.call('DEL', index.usage)
    return
  end
  local all = digits(all_resources) .. ' ' .. digits(all_bytes)
  if resources == 0 then
    redis.call('HDEL', index.usage, index.owner)
    redis.call('HSET', index.usage, '*', all)
  else
    redis.call('HSET', index.usage, index.owner, digits(resources) .. ' ' .. digits(bytes), '*', all)
  end
end

-- Schedules the owner's next expiry, sets the expiry of the index to a little
-- after that of the last resource, and updates the usage.
local function save_index(index)
  local first = redis.call('ZRANGE', index.expiries, 0, 0, 'WITHSCORES')[2]
  local last = 0
  for _, list in ipairs({ index.expiries, index.kept, index.uploads }) do
    last = math.max(last, tonumber(redis.call('ZREVRANGE', list, 0, 0, 'WITHSCORES')[2] or '0'))
  end
  if last == 0 then
    redis.call('DEL', index.sizes)
  end
  local index_expires = last + index.env.linger
  for _, key in ipairs({ index.sizes, index.kept, index.uploads }) do
    redis.call('PEXPIREAT', key, digits(index_expires))
  end
  if not first then
    redis.call('ZREM', index.due, index.owner)
    redis.call('DEL', index.names)
    update_usage(index)
    return
  end
  redis.call('ZADD', index.due, first, index.owner)
  for _, key in ipairs({ index.names, index.expiries }) do
    redis.call('PEXPIREAT', key, digits(index_expires))
  end
  update_usage(index)
  for _, key in ipairs({ index.due, index.usage }) do
    if redis.call('PTTL', key) < index_expires - index.env.now then
      redis.call('PEXPIREAT', key, digits(index_expires))
    end
  end
end

-- Parses an entry's field `past`: the earlier revisions, oldest first, each with its
-- number, the ID of its content and its size.
local function earlier_revisions(field)
  local past = {}
  for revision, id, size in string.gmatch(field or '', '(%d+):([^: ]+):(%d+)') do
    past[#past + 1] = { revision = revision, id = id, size = tonumber(size) }
  end
  return past
end

local function past_key(index, uri, revision)
  return index.env.shard .. 'past:' .. index.owner .. ':' .. revision .. ':' .. uri
end

-- Makes content expire after the grace period, so that reads that have begun can
-- finish. It counts until then.
local function retire(index, blob, bytes, grace)
  local life = redis.call('PTTL', blob_keys(index.env, blob)[1])
  if life > grace then
    expire_blob(index.env, blob, digits(index.env.now + grace))
    life = grace
  end
  if life > 0 then
    hold(index, index.kept, blob, bytes, index.env.now + life)
    note_external(index, blob, life)
  end
end

-- Drops an earlier revision.
local function drop(index, uri, earlier, grace)
  redis.call('DEL', past_key(index, uri, earlier.revision))
  retire(index, earlier.id, earlier.size, grace)
end

-- Removes an earlier revision at once, because the owner needs the room.
local function discard(index, uri, earlier)
  redis.call('DEL', past_key(index, uri, earlier.revision))
  remove_blob(index.env, earlier.id)
  note_external(index, earlier.id, 0)
end

-- The scripts do not touch a shard with another layout.
local layout = tonumber(redis.call('GET', KEYS[1]) or '0')
if layout ~= tonumber(ARGV[1]) then
  return { 'layout', layout }
end
local env = {
  shard = ARGV[2],
  channel = ARGV[3],
  linger = tonumber(ARGV[4]),
  now = time(),
}
-- How many expired resources one run removes, so that Redis is not blocked for long.
local batch = tonumber(ARGV[5])
