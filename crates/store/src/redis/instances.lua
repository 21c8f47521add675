-- Returns the live instances, after an optional heartbeat of one of them.
-- Arguments: instance, time to live of the heartbeat in ms (0: no heartbeat).
local now, ttl = time(), tonumber(ARGV[2])
if ttl > 0 then
  redis.call('ZADD', KEYS[1], digits(now + ttl), ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ttl)
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', digits(now))
return redis.call('ZRANGE', KEYS[1], 0, -1)
