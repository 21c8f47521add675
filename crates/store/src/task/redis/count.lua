-- Returns the number of tasks in the shard. KEYS[1]: its index.
return redis.call('ZCOUNT', KEYS[1], '(' .. digits(time()), '+inf')
