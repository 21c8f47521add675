-- Begins a session: its own stream, idle, most, version, client, log level.
local own, idle, most = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
redis.call('ZREMRANGEBYSCORE', sessions, '-inf', digits(now))
if redis.call('ZCARD', sessions) >= most then
  return { 'many' }
end
-- A few at a time, and more than are added.
local over = redis.call('ZCOUNT', living, '-inf', digits(now))
if over > 0 then
  redis.call('ZREMRANGEBYRANK', living, 0, math.min(over, 100) - 1)
end
redis.call('HSET', KEYS[1], 'own', own, 'version', ARGV[7], 'client', ARGV[8], 'level', ARGV[9])
touch(session, own, idle)
return { 'ok' }
