-- Returns the watches of one of the owner's resources. Arguments: uri.
local watched = shard .. 'watched:' .. owner .. ':' .. ARGV[4]
local reply = redis.call('ZRANGEBYSCORE', watched, '(' .. digits(now), '+inf')
table.insert(reply, 1, 'ok')
return reply
