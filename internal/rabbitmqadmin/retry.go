package rabbitmqadmin

import (
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"
)

const (
	firstBackoff = 250 * time.Millisecond
	maxBackoff   = 5 * time.Second
	// maxRetryAfter is the longest Retry-After that is obeyed. A longer one ends the call: a run that seems to hang
	// helps nobody.
	maxRetryAfter = 30 * time.Second
)

// backoff is how long to wait before retry number n, from 0: doubling, and between half and all of it, so that
// clients which failed together do not come back together.
func backoff(n int) time.Duration {
	d := maxBackoff
	if n < 10 {
		d = min(maxBackoff, firstBackoff<<n)
	}
	return d/2 + rand.N(d/2+1)
}

// retryStatus reports whether an answer may be another one next time. No 4xx but 429 may: it is about the request.
func retryStatus(status int) bool {
	return status == http.StatusTooManyRequests || status >= http.StatusInternalServerError
}

// retryAfter reads a Retry-After header, in either of its forms; 0 without one.
func retryAfter(header http.Header, now time.Time) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.Atoi(text); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// notDelivered reports whether a request that failed with err cannot have reached the broker. Everything but a failed
// dial may have: the connection can break between the broker's work and its answer.
func notDelivered(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect")
}
