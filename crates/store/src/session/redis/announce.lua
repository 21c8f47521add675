-- Appends an announcement to the standalone streams of the owner's sessions.
-- Arguments: uri ('' announces to all sessions, any other one to its subscribers), message, time to
-- live of the cursor, batch, events, bytes, age, and the announced changes, oldest first.
--
-- Instances that announce one change share a cursor over the sessions, in the order of their expiry,
-- which only grows. So each session receives the announcement once, and if an instance dies the
-- others continue. Instances may coalesce changes in different ways: nothing is announced if all
-- changes are announced already.
local uri, message, ttl = ARGV[4], ARGV[5], ARGV[6]
local batch = tonumber(ARGV[7])
local limits = { events = tonumber(ARGV[8]), bytes = tonumber(ARGV[9]), age = tonumber(ARGV[10]) }
-- A change can have two announcements: of the list, and of the resource.
local change = ARGV[#ARGV] .. ':' .. uri
local announced = shard .. 'announced:' .. owner .. ':' .. uri
local cursor = shard .. 'announcing:' .. owner .. ':' .. change
local receivers = uri == '' and sessions or shard .. 'subscribers:' .. owner .. ':' .. uri
-- The number of changes that are remembered as announced.
local REMEMBERED = 1000

if redis.call('EXISTS', receivers) == 0 then
  return { 'ok' }
end

local unknown = false
for i = 11, #ARGV do
  unknown = unknown or not redis.call('ZSCORE', announced, ARGV[i])
end
if not unknown then
  return { 'ok' }
end

local function deliver(id)
  local own = redis.call('HGET', key('session', id), 'own')
  if not own then
    if uri ~= '' then
      redis.call('ZREM', receivers, id)
    end
    return
  end

  local log = key('log', id, own)
  local state = redis.call('HMGET', log, 'last', 'delivered', 'newest', 'change')
  if state[4] == change then
    return
  end

  local life = redis.call('PTTL', key('session', id))
  if not state[1] then
    redis.call('HSET', log, 'last', 0, 'trimmed', 0, 'bytes', 0)
    redis.call('PEXPIRE', log, life)
  end

  redis.call('HSET', log, 'change', change)
  -- A repeated change notification carries no information.
  if state[3] == message and tonumber(state[1]) > tonumber(state[2] or '0') then
    return
  end
  redis.call('HSET', log, 'newest', message)
  push(id, own, message, limits)
end

local done = redis.call('GET', cursor)
local from = done and '(' .. done or '(' .. digits(now)
local due = redis.call('ZRANGEBYSCORE', receivers, from, '+inf', 'WITHSCORES', 'LIMIT', 0, batch)

if #due == 2 * batch then
  -- The cursor is an expiry, so a batch includes all sessions that expire with its last one.
  local last = due[#due]
  local peers = redis.call('ZRANGEBYSCORE', receivers, last, last)
  for i = 1, #due, 2 do
    if due[i + 1] ~= last then
      deliver(due[i])
    end
  end
  for _, id in ipairs(peers) do
    deliver(id)
  end
  redis.call('SET', cursor, last, 'PX', ttl)
  return { 'again' }
end

for i = 1, #due, 2 do
  deliver(due[i])
end
for i = 11, #ARGV do
  redis.call('ZADD', announced, digits(now), ARGV[i])
end
redis.call('ZREMRANGEBYRANK', announced, 0, -REMEMBERED - 1)
redis.call('PEXPIRE', announced, ttl)
redis.call('DEL', cursor)
return { 'ok' }
