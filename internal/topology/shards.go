package topology

import (
	"crypto/md5" //nolint:gosec // the rabbitkit convention spreads messages by it; nothing is protected
	"math"
	"math/big"
	"time"
)

// shardTTL is the delay in milliseconds of a tier's shard, computed or as a ladder handed it over.
func (s Spec) shardTTL(tier, shard int) int64 {
	if s.SequenceShards > 0 {
		return s.HoldDelays[tier].Milliseconds()
	}
	if s.shardDelays != nil {
		return s.shardDelays[tier][shard].Milliseconds()
	}
	return shardTTL(s.HoldDelays[tier], shard, s.JitterShards, s.JitterFactor)
}

// shardTTL is the delay in milliseconds of one of a tier's shards. Shard 0 has
// the delay itself; the others spread over ±factor around it.
func shardTTL(delay time.Duration, shard, shards int, factor float64) int64 {
	ms := delay.Milliseconds()
	if shard == 0 || shards < 2 {
		return ms
	}
	multiplier := 1 + factor
	if shards > 2 {
		// The conversion keeps processors that can from fusing the product and the sum, which would round otherwise.
		multiplier = 1 + float64(factor*(-1+2*float64(shard-1)/float64(shards-2)))
	}
	return max(1, int64(math.Floor(float64(ms)*multiplier)))
}

// JitterFactorOf is the factor that the delays of a ladder's shards come from, to four decimals; 0 where no tier is
// split. It is above 0 and below 1, as a factor has to be, even where the delays come from none.
func JitterFactorOf(refs []HoldRef) float64 {
	var tier time.Duration
	spread, longest := 0.0, time.Duration(0)
	shards := 0
	for _, ref := range refs {
		shards = max(shards, ref.Shard+1)
		switch {
		case ref.Shard == 0:
			tier = ref.Delay
		case ref.Shard == 1 && tier > longest: // the longest tier shows it best: delays are whole milliseconds
			longest, spread = tier, math.Abs(float64(ref.Delay)/float64(tier)-1)
		}
	}
	if shards < 2 {
		return 0
	}
	return min(max(math.Round(spread*1e4)/1e4, 1e-4), 1-1e-4)
}

// ShardOf is the shard a message belongs to: the MD5 of its id as a big-endian
// integer, modulo the number of shards; 0 without an id.
func ShardOf(messageID string, shards int) int {
	if messageID == "" || shards < 2 {
		return 0
	}
	sum := md5.Sum([]byte(messageID)) //nolint:gosec // see the import
	return int(new(big.Int).Mod(new(big.Int).SetBytes(sum[:]), big.NewInt(int64(shards))).Int64())
}
