-- Records a watch of one of the owner's resources. Arguments: uri, watch, time to live.
local watched, till = shard .. 'watched:' .. owner .. ':' .. ARGV[4], now + tonumber(ARGV[6])
redis.call('ZREMRANGEBYSCORE', watched, '-inf', digits(now))
redis.call('ZADD', watched, digits(till), ARGV[5])
extend(watched, till)
return { 'ok' }
