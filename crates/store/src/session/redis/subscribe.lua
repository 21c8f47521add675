-- Adds or removes a subscription. Arguments: uri, max (0 removes), idle.
local uri, max, idle = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
local life = redis.call('PTTL', KEYS[1])
if life < 0 then
  return { 'none' }
end

local subscriptions = key('subscriptions', session)
if max == 0 then
  redis.call('SREM', subscriptions, uri)
  redis.call('ZREM', subscribers(uri), session)
  return { 'ok' }
end

if redis.call('SISMEMBER', subscriptions, uri) == 0 and redis.call('SCARD', subscriptions) >= max then
  return { 'many' }
end

redis.call('SADD', subscriptions, uri)
redis.call('PEXPIRE', subscriptions, digits(life))
local till = tonumber(redis.call('HGET', KEYS[1], 'subscribed') or '0')
if till < now + life then
  enlist(session, idle)
else
  add_subscriber(uri, session, till)
end
return { 'ok' }
