package rabbitmqadmin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"
)

const (
	// base stands for whichever endpoint a request is sent to: the transport puts that in its place.
	base = "http://rabbitmq.invalid"
	// maxErrorBody and maxBody bound what is read of an answer.
	maxErrorBody = 64 << 10
	maxBody      = 1 << 30
	anyEndpoint  = -1
)

// call is one request of rabbit-hole's, carried out by this package. It is the http.RoundTripper of a rabbit-hole client
// that lives as long as the call: rabbit-hole builds the path and the body, and everything that it has no notion of (the
// context, several endpoints, retries, exact numbers, errors that can be told apart) is here. rabbit-hole itself gets
// to see an empty success only, because it takes a 404 to a DELETE for one, whoever it came from.
type call struct {
	client *Client
	ctx    context.Context //nolint:containedctx // rabbit-hole takes none; this is how it gets through

	// What an error says was being done.
	op, object, vhost string
	// query is added to the path, and body replaces rabbit-hole's where it lacks a field.
	query url.Values
	body  []byte
	// into receives the JSON of a successful answer; nil for a write.
	into any
	// endpoint is the only one to use; anyEndpoint for all in turn.
	endpoint int

	// What came of it.
	err    error
	status int
	// answered is the endpoint that answered.
	answered int
	// doubtful is set when an earlier try may have reached the broker although no answer came back.
	doubtful bool
}

func (c *Client) newCall(ctx context.Context, op, object, vhost string) *call {
	return &call{client: c, ctx: ctx, op: op, object: object, vhost: vhost, endpoint: anyEndpoint}
}

// run lets do make exactly one request with a rabbit-hole client, and returns an error of this package.
func (x *call) run(do func(rh *rabbithole.Client) error) error {
	cfg := x.client.cfg
	rh, err := rabbithole.NewTLSClient(base, cfg.Username, cfg.Password, x)
	if err == nil {
		err = do(rh)
	}
	if x.err != nil {
		return x.err
	}
	if err != nil {
		return x.failure(nil, 0, err)
	}
	return nil
}

// write is run for rabbit-hole's methods that return a response.
func (x *call) write(do func(rh *rabbithole.Client) (*http.Response, error)) error {
	return x.run(func(rh *rabbithole.Client) error {
		res, err := do(rh)
		if err == nil {
			err = res.Body.Close()
		}
		return err
	})
}

// RoundTrip implements http.RoundTripper for rabbit-hole.
func (x *call) RoundTrip(req *http.Request) (*http.Response, error) {
	answer, err := x.roundTrip(req)
	if err == nil {
		err = x.judge(answer)
	}
	if err != nil {
		x.err = err
		return nil, err
	}
	// "null" decodes into whatever rabbit-hole has ready for it.
	return &http.Response{
		Status: http.StatusText(http.StatusOK), StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{}, Body: io.NopCloser(strings.NewReader("null")), Request: req,
	}, nil
}

// answer is what one endpoint said.
type answer struct {
	endpoint    int
	method, url string
	status      int
	header      http.Header
	body        []byte
}

// roundTrip sends the request until an endpoint gives an answer that counts: in rounds over all endpoints, starting
// with the one that answered last, with a pause between rounds.
func (x *call) roundTrip(req *http.Request) (*answer, error) {
	body := x.body
	if body == nil && req.GetBody != nil {
		reader, err := req.GetBody()
		if err != nil {
			return nil, x.failure(req, 0, err)
		}
		if body, err = io.ReadAll(reader); err != nil {
			return nil, x.failure(req, 0, err)
		}
	}
	c := x.client
	for round := 0; ; round++ {
		// Each time: a token may expire while a broker is waited for.
		if err := c.cfg.authorize(req.Header); err != nil {
			return nil, x.failure(req, 0, err)
		}
		outcome, wait := x.round(req, body)
		switch {
		case outcome.answer != nil && !retryStatus(outcome.answer.status):
			return outcome.answer, nil
		case x.ctx.Err() != nil:
			return nil, x.failure(req, 0, x.ctx.Err())
		case round >= c.cfg.MaxRetries, outcome.permanent, wait > maxRetryAfter:
			return nil, x.givenUp(outcome, round+1, wait)
		}
		wait = max(wait, backoff(round))
		if deadline, ok := x.ctx.Deadline(); ok && time.Until(deadline) < wait {
			return nil, x.givenUp(outcome, round+1, 0)
		}
		c.cfg.Logf(x.ctx, "waiting before RabbitMQ is asked again", map[string]any{
			"object": x.object, "retry": round + 1, "wait_ms": wait.Milliseconds(),
		})
		if err := c.pause(x.ctx, wait); err != nil {
			return nil, x.failure(req, 0, err)
		}
	}
}

// roundOutcome is what a round over the endpoints gave: an answer, or the reasons for none.
type roundOutcome struct {
	answer    *answer
	endpoints []string
	causes    []error
	// permanent: every connection failed in a way that trying again does not change.
	permanent bool
}

// round tries the endpoints in turn until one gives an answer that is not to be retried. wait is what the server asked for.
func (x *call) round(req *http.Request, body []byte) (out roundOutcome, wait time.Duration) {
	c := x.client
	first, n := int(c.current.Load()), len(c.endpoints)
	if x.endpoint != anyEndpoint {
		first, n = x.endpoint, 1
	}
	out.permanent = true
	for i := range n {
		at := (first + i) % len(c.endpoints)
		got, err := x.try(req, body, at)
		if err != nil {
			out.endpoints = append(out.endpoints, string(c.endpoints[at]))
			out.causes = append(out.causes, err)
			out.permanent = out.permanent && permanentFailure(err)
			if x.ctx.Err() != nil {
				return out, 0
			}
			continue
		}
		out.answer, out.permanent = got, false
		if !retryStatus(got.status) {
			c.current.Store(int64(at))
			return out, 0
		}
		wait = max(wait, retryAfter(got.header, time.Now()))
		if got.status == http.StatusTooManyRequests {
			// Asking its neighbours at once is not what it meant.
			return out, wait
		}
	}
	return out, wait
}

// try sends the request to one endpoint and reads the whole answer, within the request timeout. A write that is under way
// is not cut off when x.ctx ends: RabbitMQ 3.10 stops in the middle of a declaration, and leaves a quorum queue without a
// leader, which takes no message and cannot be measured.
func (x *call) try(req *http.Request, body []byte, at int) (*answer, error) {
	c := x.client
	if err := x.ctx.Err(); err != nil {
		return nil, err
	}
	whole := x.ctx
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		whole = context.WithoutCancel(x.ctx)
	}
	ctx, cancel := context.WithTimeout(whole, c.cfg.RequestTimeout)
	defer cancel()
	out, err := x.request(ctx, req, body, at)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	c.requests.Add(1)
	got, err := c.exchange(out)
	fields := map[string]any{"method": out.Method, "url": out.URL.Redacted(), "duration_ms": time.Since(start).Milliseconds()}
	if err != nil {
		x.doubtful = x.doubtful || !notDelivered(err)
		if x.ctx.Err() == nil && ctx.Err() != nil {
			err = fmt.Errorf("no answer within %s: %w", c.cfg.RequestTimeout, ctx.Err())
		}
		fields["error"] = err.Error()
		c.cfg.Logf(x.ctx, "RabbitMQ did not answer", fields)
		return nil, err
	}
	x.doubtful = x.doubtful || got.status >= http.StatusInternalServerError
	got.endpoint = at
	fields["status"] = got.status
	c.cfg.Logf(x.ctx, "RabbitMQ answered", fields)
	return got, nil
}

// request is rabbit-hole's request, addressed to an endpoint and with the configured headers. Unlike rabbit-hole's own
// it leaves the connection open for the next.
func (x *call) request(ctx context.Context, req *http.Request, body []byte, at int) (*http.Request, error) {
	c := x.client
	query := req.URL.Query()
	for key, values := range x.query {
		query[key] = values
	}
	target := string(c.endpoints[at]) + req.URL.EscapedPath()
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	out, err := http.NewRequestWithContext(ctx, req.Method, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	out.Header = req.Header.Clone()
	out.Header.Set("Accept", "application/json")
	out.Header.Set("User-Agent", c.cfg.UserAgent)
	for name, values := range c.cfg.Headers {
		out.Header[http.CanonicalHeaderKey(name)] = values
		if http.CanonicalHeaderKey(name) == "Host" && len(values) > 0 {
			out.Host = values[0]
		}
	}
	return out, nil
}

// exchange sends one request and reads the answer. Redirects are not followed: the credentials are not for others.
func (c *Client) exchange(req *http.Request) (*answer, error) {
	res, err := c.http.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	limit := int64(maxErrorBody)
	if res.StatusCode < http.StatusMultipleChoices {
		limit = maxBody
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, limit))
	if err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	// What is asked for in the query is no help to a reader of errors.
	shown := *req.URL
	shown.RawQuery = ""
	return &answer{method: req.Method, url: shown.Redacted(), status: res.StatusCode, header: res.Header, body: body}, nil
}

// judge turns an answer into a result or an error.
func (x *call) judge(a *answer) error {
	x.status, x.answered = a.status, a.endpoint
	switch {
	case a.status >= http.StatusMultipleChoices:
		return x.refused(a)
	case x.into == nil:
		if a.status == http.StatusCreated || a.status == http.StatusNoContent {
			return nil
		}
		return x.strange(a, nil)
	}
	if err := json.Unmarshal(a.body, x.into); err != nil {
		return x.strange(a, err)
	}
	return nil
}

// failure is an error without an answer.
func (x *call) failure(req *http.Request, status int, cause error) *Error {
	e := &Error{Op: x.op, Object: x.object, VHost: x.vhost, Status: status, cause: cause}
	if req != nil {
		e.Method, e.URL = req.Method, strings.TrimPrefix(req.URL.Redacted(), base)
	}
	switch {
	case errors.Is(cause, context.Canceled):
		e.Reason = "stopped before RabbitMQ answered: " + cause.Error()
	case errors.Is(cause, context.DeadlineExceeded):
		e.Reason = "the time for it ran out before RabbitMQ answered: " + cause.Error()
	}
	return e
}

// givenUp is the error after the last round.
func (x *call) givenUp(out roundOutcome, tries int, wait time.Duration) error {
	if out.answer == nil {
		return &UnreachableError{Op: x.op, Object: x.object, VHost: x.vhost, Endpoints: out.endpoints, Causes: out.causes, Tries: tries}
	}
	e := x.answerError(out.answer)
	e.Advice = fmt.Sprintf("this was try %d, and the server has the problem: look at its log, and try again", tries)
	if out.answer.status == http.StatusTooManyRequests {
		e.Advice = fmt.Sprintf("this was try %d: lower the parallelism, or try again later", tries)
	}
	if wait > maxRetryAfter {
		e.Advice = fmt.Sprintf("the server asks to be left alone for %s: try again then", wait.Round(time.Second))
	}
	return e
}
