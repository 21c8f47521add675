-- Functions of all session scripts, prepended to each of them. mod.rs documents
-- the keys. ARGV[1] to ARGV[3]: the shard's prefix, the owner, the session. The
-- arguments in the scripts' comments begin at ARGV[4]. Times are in milliseconds.
local shard, owner, session = ARGV[1], ARGV[2], ARGV[3]
local now = time()

local function key(kind, id, stream)
  local name = shard .. kind .. ':' .. owner .. ':' .. id
  return stream and name .. ':' .. stream or name
end

local sessions = shard .. 'sessions:' .. owner
local owners = shard .. 'owners'
local living = shard .. 'living'

-- Extends the expiry of a key, never shortens it.
local function extend(name, till)
  if redis.call('PTTL', name) < till - now then
    redis.call('PEXPIREAT', name, digits(till))
  end
end

-- The sessions that subscribe to a resource.
local function subscribers(uri)
  return shard .. 'subscribers:' .. owner .. ':' .. uri
end

local function add_subscriber(uri, id, till)
  redis.call('ZADD', subscribers(uri), digits(till), id)
  redis.call('ZREMRANGEBYSCORE', subscribers(uri), '-inf', digits(now))
  extend(subscribers(uri), till)
end

-- Adds a session to the subscribers of all its resources, for longer than its present life, so that
-- this is seldom repeated.
local function enlist(id, idle)
  local till = now + idle + math.floor(idle / 2)
  redis.call('HSET', key('session', id), 'subscribed', digits(till))
  for _, uri in ipairs(redis.call('SMEMBERS', key('subscriptions', id))) do
    add_subscriber(uri, id, till)
  end
end

-- Extends the expiry of a session and of the keys that expire with it.
local function touch(id, own, idle)
  local till = now + idle
  redis.call('ZADD', sessions, digits(till), id)
  redis.call('ZADD', owners, 'GT', digits(till), owner)
  redis.call('ZADD', living, digits(till), id)
  for _, name in ipairs({ sessions, owners, living, key('session', id), key('subscriptions', id),
    key('log', id, own), key('stream', id, own) }) do
    extend(name, till)
  end

  local subscribed = redis.call('HGET', key('session', id), 'subscribed')
  if subscribed and tonumber(subscribed) < till then
    enlist(id, idle)
  end
end

-- Wakes the follower, on any instance.
local function wake(log)
  local follower = redis.call('HMGET', log, 'channel', 'follower')
  if follower[1] then
    redis.call('PUBLISH', follower[1], 'wake ' .. follower[2])
  end
end

-- Closes a stream. It can be resumed for the replay time. A follower that is still
-- reading then has the linger time to finish.
local function close(stream, replay, linger)
  local log, till = key('log', session, stream), now + replay
  redis.call('HSET', log, 'until', digits(till))
  redis.call('PEXPIREAT', log, digits(till + linger))
  redis.call('PEXPIREAT', key('stream', session, stream), digits(till + linger))
  redis.call('ZADD', key('streams', session), digits(till), stream)
end

-- Appends a message and trims the oldest ones while the stream exceeds its limits. The newest message
-- stays, because it may be the call's result.
local function push(id, stream, message, limits)
  local log, entries = key('log', id, stream), key('stream', id, stream)
  local position = redis.call('HINCRBY', log, 'last', 1)
  redis.call('XADD', entries, '0-' .. digits(position), 'm', message, 't', digits(now))

  local bytes = redis.call('HINCRBY', log, 'bytes', #message)
  local length = redis.call('XLEN', entries)
  local since = tonumber(redis.call('HGET', log, 'since') or digits(now))

  local first, dropped = position - length + 1, 0
  while length > 1 and (length > limits.events or bytes > limits.bytes or now - since > limits.age) do
    local two = redis.call('XRANGE', entries, '0-' .. digits(first), '+', 'COUNT', 2)
    bytes = bytes - #two[1][2][2]
    since = tonumber(two[2][2][4])
    first, length, dropped = first + 1, length - 1, dropped + 1
    redis.call('XTRIM', entries, 'MINID', '=', '0-' .. digits(first))
  end

  if dropped > 0 then
    redis.call('HSET', log, 'trimmed', digits(first - 1), 'bytes', digits(bytes))
  end
  redis.call('HSET', log, 'since', digits(since))
  local life = redis.call('PTTL', log)
  if life > 0 then
    redis.call('PEXPIRE', entries, digits(life))
  end

  wake(log)
  return position
end
