-- Adds or removes a subscription. Arguments: uri, max (0 removes).
local uri, max = ARGV[4], tonumber(ARGV[5])
local life = redis.call('PTTL', KEYS[1])
if life < 0 then
  return { 'none' }
end
local subscriptions = key('subscriptions', session)
if max == 0 then
  redis.call('SREM', subscriptions, uri)
  return { 'ok' }
end
if redis.call('SISMEMBER', subscriptions, uri) == 0 and redis.call('SCARD', subscriptions) >= max then
  return { 'many' }
end
redis.call('SADD', subscriptions, uri)
redis.call('PEXPIRE', subscriptions, digits(life))
return { 'ok' }
