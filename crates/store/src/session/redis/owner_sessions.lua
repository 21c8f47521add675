-- Returns the number of the owner's sessions, and the IDs of some. Arguments: the number of
-- sessions to skip, the number of IDs.
local from = '(' .. digits(now)
local count = redis.call('ZCOUNT', sessions, from, '+inf')
return { count, redis.call('ZRANGEBYSCORE', sessions, from, '+inf', 'LIMIT', ARGV[4], ARGV[5]) }
