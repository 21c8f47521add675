-- Blocks may be compressed, so an entry's block table also has the stored length
-- of each block. Existing blocks remain uncompressed.
--
--   entry:<owner>:<uri>
--       blocks             16 bytes per block: length (u32), stored length (u32),
--                          first line (u64), little-endian
--   blob:<id>              string  the blocks in order; a block whose stored length is
--                          less than its length is a zstd frame
--
-- sizes still counts uncompressed lengths.
for _, owner in ipairs(redis.call('ZRANGE', shard .. 'due', 0, -1)) do
  for _, uri in ipairs(redis.call('ZRANGE', shard .. 'expiries:' .. owner, 0, -1)) do
    local entry = shard .. 'entry:' .. owner .. ':' .. uri
    local blocks = redis.call('HGET', entry, 'blocks')

    if blocks then
      local longer = {}
      for at = 1, #blocks, 12 do
        local length = blocks:sub(at, at + 3)
        longer[#longer + 1] = length .. length .. blocks:sub(at + 4, at + 11)
      end
      redis.call('HSET', entry, 'blocks', table.concat(longer))
    end
  end
end
