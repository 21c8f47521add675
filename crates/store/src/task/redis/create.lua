-- Creates a task. KEYS[2], KEYS[3]: the indexes of the owner's tasks and of the shard's.
-- Arguments: id, ttl, max, runner.
local id, ttl, max = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', digits(now))
if redis.call('ZCARD', KEYS[2]) >= max then
  return { 'many' }
end

local till = now + ttl
redis.call('HSET', KEYS[1], 'created', digits(now), 'updated', digits(now), 'ttl', digits(ttl), 'runner', ARGV[4])
redis.call('PEXPIREAT', KEYS[1], digits(till))

-- Removes expired tasks from the shard's index, at most 100 per call.
local expired = redis.call('ZCOUNT', KEYS[3], '-inf', digits(now))
if expired > 0 then
  redis.call('ZREMRANGEBYRANK', KEYS[3], 0, math.min(expired, 100) - 1)
end

for _, index in ipairs({ KEYS[2], KEYS[3] }) do
  redis.call('ZADD', index, digits(till), id)
  if redis.call('PTTL', index) < ttl then
    redis.call('PEXPIREAT', index, digits(till))
  end
end
return { 'ok', digits(now) }
