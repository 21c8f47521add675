-- Which replicas live; says first that this one does: replica, how long that
-- holds (0 to say nothing).
local now, holds = time(), tonumber(ARGV[2])
if holds > 0 then
  redis.call('ZADD', KEYS[1], digits(now + holds), ARGV[1])
  redis.call('PEXPIRE', KEYS[1], holds)
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', digits(now))
return redis.call('ZRANGE', KEYS[1], 0, -1)
