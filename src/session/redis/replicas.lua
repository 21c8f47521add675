-- Which replicas live; says first that this one does: replica, how long that
-- holds (0 to say nothing).
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000)
local holds = tonumber(ARGV[2])
if holds > 0 then
  redis.call('ZADD', KEYS[1], string.format('%.0f', now + holds), ARGV[1])
  redis.call('PEXPIRE', KEYS[1], holds)
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
return redis.call('ZRANGE', KEYS[1], 0, -1)
