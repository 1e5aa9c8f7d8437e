package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// The kinds of requests.
const (
	receive    = "receive"
	remove     = "delete"
	visibility = "visibility" // a message is given back, at once or after a delay
	heartbeat  = "heartbeat"  // a message that is here stays invisible
)

// counter is the HTTP client of a consumer: it counts requests by kind.
type counter struct {
	client http.Client
	// lease is the queue's visibility timeout, in seconds: what a heartbeat asks for.
	lease int

	mu     sync.Mutex
	counts map[string]int
	// settled is when a message was last deleted.
	settled time.Time
}

func newCounter(lease time.Duration) *counter {
	return &counter{
		client: http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}, lease: int(lease.Seconds()), counts: make(map[string]int),
	}
}

// Do implements the AWS SDK's HTTPClient.
func (c *counter) Do(r *http.Request) (*http.Response, error) {
	_, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	kind := map[string]string{"ReceiveMessage": receive, "DeleteMessageBatch": remove, "ChangeMessageVisibilityBatch": visibility}[action]
	if kind == visibility {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(text))
		var in struct {
			Entries []struct{ VisibilityTimeout int }
		}
		if err := json.Unmarshal(text, &in); err != nil {
			return nil, err
		}
		if len(in.Entries) > 0 && in.Entries[0].VisibilityTimeout == c.lease {
			kind = heartbeat
		}
	}
	c.mu.Lock()
	c.counts[kind]++
	if kind == remove {
		c.settled = time.Now()
	}
	c.mu.Unlock()
	return c.client.Do(r)
}

// reset begins to count again, and read says what was counted since.
func (c *counter) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.counts)
}

func (c *counter) read() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	read := make(map[string]int, len(c.counts))
	for kind, n := range c.counts {
		read[kind] = n
	}
	return read
}
