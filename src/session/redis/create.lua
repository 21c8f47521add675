-- Begins a session: its own stream, idle, most, version, client, log level.
local own, idle, most = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
redis.call('ZREMRANGEBYSCORE', sessions, '-inf', digits(now))
if redis.call('ZCARD', sessions) >= most then
  return { 'many' }
end
redis.call('HSET', KEYS[1], 'own', own, 'version', ARGV[7], 'client', ARGV[8], 'level', ARGV[9])
touch(session, own, idle)
return { 'ok' }
