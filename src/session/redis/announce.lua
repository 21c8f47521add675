-- Appends an announcement to the standalone streams of the owner's sessions.
-- Arguments: change, uri ('' to announce to all sessions, else only to those that
-- subscribe to it), message, time to live of the cursor, batch, events, bytes, age.
-- Instances that announce the same change share one cursor over the sessions,
-- in the order of their expiry, which only grows. So each session receives the
-- announcement once, and if an instance dies the others continue.
local change, uri, message = ARGV[4], ARGV[5], ARGV[6]
local batch = tonumber(ARGV[8])
local limits = { events = tonumber(ARGV[9]), bytes = tonumber(ARGV[10]), age = tonumber(ARGV[11]) }
local cursor = shard .. 'announced:' .. owner .. ':' .. change

local function deliver(id)
  local own = redis.call('HGET', key('session', id), 'own')
  if not own then
    return
  end
  if uri ~= '' and redis.call('SISMEMBER', key('subscriptions', id), uri) == 0 then
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
if done == 'all' then
  return { 'ok' }
end
local from = done and '(' .. done or '(' .. digits(now)
local due = redis.call('ZRANGEBYSCORE', sessions, from, '+inf', 'WITHSCORES', 'LIMIT', 0, batch)
if #due == 2 * batch then
  -- The cursor is an expiry, so a batch includes all sessions that expire with its last one.
  local last = due[#due]
  local peers = redis.call('ZRANGEBYSCORE', sessions, last, last)
  for i = 1, #due, 2 do
    if due[i + 1] ~= last then
      deliver(due[i])
    end
  end
  for _, id in ipairs(peers) do
    deliver(id)
  end
  redis.call('SET', cursor, last, 'PX', ARGV[7])
  return { 'again' }
end
for i = 1, #due, 2 do
  deliver(due[i])
end
redis.call('SET', cursor, 'all', 'PX', ARGV[7])
return { 'ok' }
