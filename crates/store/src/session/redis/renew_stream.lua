-- Renews the lease of an open stream. Arguments: stream, lease including linger.
local stream, till = ARGV[4], now + tonumber(ARGV[5])
if redis.call('EXISTS', KEYS[1]) == 1 and redis.call('HEXISTS', KEYS[1], 'until') == 0 then
  redis.call('PEXPIREAT', KEYS[1], digits(till))
  redis.call('PEXPIREAT', key('stream', session, stream), digits(till))
  redis.call('ZADD', key('streams', session), digits(till), stream)
  extend(key('streams', session), till)
end
return { 'ok' }
