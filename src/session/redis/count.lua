-- How many sessions of the shard live.
return redis.call('ZCOUNT', living, '(' .. digits(now), '+inf')
