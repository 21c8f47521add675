-- Tells who watches one of this owner's resources: uri.
local watched = shard .. 'watched:' .. owner .. ':' .. ARGV[4]
local answer = redis.call('ZRANGEBYSCORE', watched, '(' .. digits(now), '+inf')
table.insert(answer, 1, 'ok')
return answer
