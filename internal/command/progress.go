package command

import (
	"fmt"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/redeliver/terraform-provider-redeliver/internal/transfer"
)

// tellEvery is how often a run says how far it is where there is no terminal to draw a bar on.
const tellEvery = 10 * time.Second

// progress shows how far a run is: on a terminal as a bar, elsewhere as a line now and then. It writes to standard error.
type progress struct {
	a     *app
	queue string
	limit int
	begun time.Time
	told  time.Time
	bar   *progressbar.ProgressBar // nil until it is drawn
}

func (a *app) newProgress(queue string, limit int) *progress {
	now := time.Now()
	return &progress{a: a, queue: queue, limit: limit, begun: now, told: now}
}

// tell is told how far the run is.
func (p *progress) tell(r transfer.Report) {
	total, seen := r.Found, r.Moved+r.Skipped+r.Failed+r.Doubtful
	if p.limit > 0 && r.Skipped == 0 {
		total = min(total, p.limit)
	}
	if total == 0 {
		return
	}
	if isTerminal(p.a.std.Err) {
		p.draw(total, seen, r)
		return
	}
	if time.Since(p.told) < tellEvery || seen == 0 {
		return
	}
	p.told = time.Now()
	spent := time.Since(p.begun)
	left := time.Duration(float64(spent) / float64(seen) * float64(total-seen))
	p.a.say("queue %s: %s of %s, %.0f/s, %s left%s", shown(p.queue), count(seen), count(total), float64(seen)/spent.Seconds(), about(left), failures(r))
}

func (p *progress) draw(total, seen int, r transfer.Report) {
	if p.bar == nil {
		p.bar = progressbar.NewOptions(total,
			progressbar.OptionSetWriter(p.a.std.Err), progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("msg"),
			progressbar.OptionSetPredictTime(true), progressbar.OptionSetElapsedTime(true), progressbar.OptionSetWidth(24), progressbar.OptionUseANSICodes(true),
			progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(0))
	}
	p.bar.ChangeMax(total)
	p.bar.Describe(shown(p.queue) + failures(r))
	_ = p.bar.Set(min(seen, total)) // a bar that cannot be drawn stops nothing
}

// failures says how many messages stay, or may be there twice, where any do.
func failures(r transfer.Report) string {
	if r.Failed+r.Doubtful == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s failed, %s doubtful)", count(r.Failed), count(r.Doubtful))
}

// end takes the bar away.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Clear() // as above
	}
}
