package sqsadmin

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// requestsAtOnce bounds the requests that one client has open.
const requestsAtOnce = 10

// Client is SQS as one identity reaches it in one region.
type Client struct {
	cfg      Config
	aws      aws.Config
	sqs      *sqs.Client
	endpoint string
	slots    chan struct{}
	pace     pace
	// answered: something has answered a request.
	answered atomic.Bool

	account struct {
		sync.Mutex
		id  string
		err error
	}
}

// pace is how long is waited between reads.
type pace struct {
	// between two reads that wait for a write to be seen, at first and at most.
	first, longest time.Duration
	// recreate is what is waited before a name that was deleted is tried again.
	recreate time.Duration
	// count is what is waited between two counts of messages.
	count time.Duration
}

// New makes a client. It reads configuration and makes no request.
func New(ctx context.Context, cfg Config) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	loaded, err := cfg.load(ctx)
	if err != nil {
		return nil, err
	}
	silence := func(context.Context, string, map[string]any) {}
	if cfg.Logf == nil {
		cfg.Logf = silence
	}
	if cfg.Progressf == nil {
		cfg.Progressf = silence
	}
	c := &Client{
		cfg: cfg, aws: loaded, slots: make(chan struct{}, requestsAtOnce),
		pace: pace{first: 500 * time.Millisecond, longest: 5 * time.Second, recreate: 5 * time.Second, count: 5 * time.Second},
	}
	c.sqs = sqs.NewFromConfig(loaded, func(o *sqs.Options) {
		if cfg.Endpoint != "" {
			o.BaseEndpoint = aws.String(cfg.Endpoint)
		}
		o.Retryer = &patient{Retryer: o.Retryer, answered: &c.answered}
		o.APIOptions = append(o.APIOptions, awsmiddleware.AddUserAgentKeyValue(defaultSession, cfg.UserAgentVersion), c.observe)
	})
	if endpoint := c.sqs.Options().BaseEndpoint; endpoint != nil {
		c.endpoint = strings.TrimSuffix(*endpoint, "/")
	}
	return c, nil
}

// Region is the region that queues are in.
func (c *Client) Region() string { return c.aws.Region }

// Endpoint is the address of SQS where it is not the region's own; "" where it is.
func (c *Client) Endpoint() string { return c.endpoint }

// observe bounds the requests that are open, and logs each.
func (c *Client) observe(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("redeliver",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			select {
			case c.slots <- struct{}{}:
				defer func() { <-c.slots }()
			case <-ctx.Done():
				return middleware.InitializeOutput{}, middleware.Metadata{}, ctx.Err()
			}
			start := time.Now()
			out, metadata, err := next.HandleInitialize(ctx, in)
			var response *smithyhttp.ResponseError
			if err == nil || errors.As(err, &response) && response.HTTPStatusCode() != 0 {
				c.answered.Store(true)
			}
			fields := map[string]any{"operation": awsmiddleware.GetOperationName(ctx), "duration": time.Since(start).String()}
			if err != nil {
				fields["error"] = reason(err)
			}
			c.cfg.Logf(ctx, "SQS request", fields)
			return out, metadata, err
		}), middleware.Before)
}

// ErrNoAccount is that nobody can be asked for the id of the account.
var ErrNoAccount = errors.New("the account id is not known")

// Account is the id of the account that queues belong to: as configured, or as the credentials say, or as STS says, which
// is asked once.
func (c *Client) Account(ctx context.Context) (string, error) {
	if c.cfg.Account != "" {
		return c.cfg.Account, nil
	}
	c.account.Lock()
	defer c.account.Unlock()
	if c.account.id == "" && c.account.err == nil {
		id, err := c.askAccount(ctx)
		if err != nil && ctx.Err() != nil {
			return "", err // which says nothing about the next one who asks
		}
		c.account.id, c.account.err = id, err
	}
	return c.account.id, c.account.err
}

func (c *Client) askAccount(ctx context.Context) (string, error) {
	const setIt = `set sqs = { account_id = "..." } in the provider block`
	if held, err := c.aws.Credentials.Retrieve(ctx); err == nil && held.AccountID != "" {
		return held.AccountID, nil
	}
	client := sts.NewFromConfig(c.aws)
	if client.Options().BaseEndpoint == nil && c.endpoint != "" && !isAWS(c.endpoint) {
		return "", fmt.Errorf("%w: %s is no endpoint of AWS, and STS cannot say in whose account its queues are; %s (emulators take 000000000000)", ErrNoAccount, c.endpoint, setIt)
	}
	start := time.Now()
	answer, err := client.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	c.cfg.Logf(ctx, "STS request", map[string]any{"operation": "GetCallerIdentity", "duration": time.Since(start).String()})
	if err != nil {
		return "", fmt.Errorf("%w: asking STS for it failed: %w; %s, and STS is not asked", ErrNoAccount, failure("", err), setIt)
	}
	return aws.ToString(answer.Account), nil
}

// isAWS reports whether an endpoint is one of AWS, in whose stead its STS can be asked.
func isAWS(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	for _, domain := range []string{".amazonaws.com", ".amazonaws.com.cn", ".api.aws"} {
		if strings.HasSuffix(u.Hostname(), domain) {
			return true
		}
	}
	return false
}
