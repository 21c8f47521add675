-- Creates a task. KEYS[2]: the index of the owner's tasks. Arguments: id, ttl, max,
-- runner.
local id, ttl, max = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', digits(now))
if redis.call('ZCARD', KEYS[2]) >= max then
  return { 'many' }
end
local till = now + ttl
redis.call('HSET', KEYS[1], 'created', digits(now), 'updated', digits(now), 'ttl', digits(ttl), 'runner', ARGV[4])
redis.call('PEXPIREAT', KEYS[1], digits(till))
redis.call('ZADD', KEYS[2], digits(till), id)
if redis.call('PTTL', KEYS[2]) < ttl then
  redis.call('PEXPIREAT', KEYS[2], digits(till))
end
return { 'ok', digits(now) }
