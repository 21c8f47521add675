-- Notes for so long who watches one of this owner's resources, under which name: uri, watch, lasting.
local watched, till = shard .. 'watched:' .. owner .. ':' .. ARGV[4], now + tonumber(ARGV[6])
redis.call('ZREMRANGEBYSCORE', watched, '-inf', digits(now))
redis.call('ZADD', watched, digits(till), ARGV[5])
extend(watched, till)
return { 'ok' }
