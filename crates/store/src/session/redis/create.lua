-- Creates a session. Arguments: standalone stream, idle, max, version, client, log level.
local own, idle, max = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
redis.call('ZREMRANGEBYSCORE', sessions, '-inf', digits(now))
if redis.call('ZCARD', sessions) >= max then
  return { 'many' }
end

-- Removes expired sessions from the count, at most 100 per call.
local expired = redis.call('ZCOUNT', living, '-inf', digits(now))
if expired > 0 then
  redis.call('ZREMRANGEBYRANK', living, 0, math.min(expired, 100) - 1)
end

redis.call('HSET', KEYS[1], 'own', own, 'version', ARGV[7], 'client', ARGV[8], 'level', ARGV[9])
touch(session, own, idle)
return { 'ok' }
