-- Appends an announcement to the own streams of the sessions that want it:
-- change, uri (or '' for what all want), message, memory, batch, events, bytes, age.
-- Replicas that hear of the same change share one cursor over the sessions, in
-- the order in which they expire; being used only moves a session on. So all
-- are told, each once, whoever of the replicas does it, and one that dies
-- leaves the rest to the others.
local change, uri, message = ARGV[4], ARGV[5], ARGV[6]
local batch = tonumber(ARGV[8])
local limits = { events = tonumber(ARGV[9]), bytes = tonumber(ARGV[10]), age = tonumber(ARGV[11]) }
local progress = shard .. 'announced:' .. owner .. ':' .. change

local function tell(id)
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
  -- Saying twice that a list changed says nothing more.
  if state[3] == message and tonumber(state[1]) > tonumber(state[2] or '0') then
    return
  end
  redis.call('HSET', log, 'newest', message)
  push(id, own, message, limits)
end

local done = redis.call('GET', progress)
if done == 'all' then
  return { 'ok' }
end
local from = done and '(' .. done or '(' .. digits(now)
local due = redis.call('ZRANGEBYSCORE', sessions, from, '+inf', 'WITHSCORES', 'LIMIT', 0, batch)
if #due == 2 * batch then
  -- Those that expire together with the last are told together with it.
  local last = due[#due]
  local peers = redis.call('ZRANGEBYSCORE', sessions, last, last)
  for i = 1, #due, 2 do
    if due[i + 1] ~= last then
      tell(due[i])
    end
  end
  for _, id in ipairs(peers) do
    tell(id)
  end
  redis.call('SET', progress, last, 'PX', ARGV[7])
  return { 'again' }
end
for i = 1, #due, 2 do
  tell(due[i])
end
redis.call('SET', progress, 'all', 'PX', ARGV[7])
return { 'ok' }
