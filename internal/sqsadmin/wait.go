package sqsadmin

import (
	"context"
	"fmt"
	"time"
)

// agreeing is how many reads in a row have to show a write until it counts as seen.
const agreeing = 3

// await reads until what was written is seen by several reads in a row, or ctx ends. look returns "" where it is, or else
// what it sees instead. Every read that waits leaves a line in the log.
func (c *Client) await(ctx context.Context, what, arn string, look func(context.Context) (instead string, err error)) error {
	start, pause, seen := time.Now(), c.pace.first, 0
	for {
		instead, err := look(ctx)
		switch {
		case err != nil:
			return err
		case instead == "":
			if seen++; seen == agreeing {
				return nil
			}
			pause = c.pace.first
		default:
			seen = 0
			c.cfg.Progressf(ctx, "waiting until SQS shows "+what, map[string]any{"queue": arn, "waited": time.Since(start).Round(time.Second).String(), "sees": instead})
		}
		if err := sleep(ctx, pause); err != nil {
			if instead == "" {
				instead = "reads that do not agree yet"
			}
			return fmt.Errorf("SQS took the request and does not show %s of %s after %s, but %s: %w; raise timeouts, or apply again later",
				what, object(arn), time.Since(start).Round(time.Second), instead, err)
		}
		pause = min(pause*3/2, c.pace.longest)
	}
}

// sleep waits, or returns the error of a context that ended.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
