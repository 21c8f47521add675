-- Follows a stream and cuts off its previous follower. Arguments: stream ('' for the
-- session's standalone stream), position, channel, follower.
local stream, position = ARGV[4], tonumber(ARGV[5])
local own = redis.call('HGET', KEYS[1], 'own')
if not own then
  return { 'none' }
end

local standalone = stream == ''
if standalone then
  stream = own
end
local log = key('log', session, stream)
if stream == own and redis.call('EXISTS', log) == 0 then
  redis.call('HSET', log, 'last', 0, 'trimmed', 0, 'bytes', 0)
  redis.call('PEXPIRE', log, redis.call('PTTL', KEYS[1]))
end

local state = redis.call('HMGET', log, 'last', 'trimmed', 'delivered', 'until', 'channel', 'follower')
if not state[1] or (state[4] and now >= tonumber(state[4])) then
  return { 'no stream' }
end
if standalone then
  -- Continues with the first undelivered message that is still kept.
  position = math.max(tonumber(state[3] or '0'), tonumber(state[2]))
end
if position > tonumber(state[1]) then
  return { 'no stream' }
end
if position < tonumber(state[2]) then
  return { 'trimmed' }
end

if state[5] then
  redis.call('PUBLISH', state[5], 'cut ' .. state[6])
end
redis.call('HSET', log, 'channel', ARGV[6], 'follower', ARGV[7])
redis.call('HDEL', log, 'disconnect')
return { 'ok', stream, digits(position), stream == own and 'own' or '' }
