package sqsadmin

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// DefaultMaxRetries is how often a request is sent again where nothing says it: neither the configuration nor AWS_MAX_ATTEMPTS.
const DefaultMaxRetries = 10

// requestTimeout is how long one try of a request may take. No request of the control plane waits for anything.
const requestTimeout = 15 * time.Second

// defaultSession is the name under which a role is assumed that is given none.
const defaultSession = "terraform-provider-redeliver"

// Config says how to reach SQS. What it leaves out comes from where the AWS SDK looks for it: environment variables
// (AWS_REGION, AWS_PROFILE, AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL_SQS, ...), the shared configuration files, and for credentials what the
// machine has.
type Config struct {
	// Region is the region that queues are in.
	Region string
	// Profile names a profile of the shared configuration files.
	Profile string
	// Endpoint is the address of SQS where it is not the region's: a VPC endpoint, or an emulator.
	Endpoint string
	// AccessKey, SecretKey and SessionToken are credentials. The first two go together; the last one goes with temporary ones.
	AccessKey, SecretKey, SessionToken string
	// AssumeRole is a role to assume with the credentials; without an ARN none is.
	AssumeRole AssumeRole
	// Account is the id of the account that queues belong to; "" asks.
	Account string
	// MaxRetries is how often a request is sent again; nil is the default.
	MaxRetries *int
	// UserAgentVersion is the product's version, for the User-Agent header.
	UserAgentVersion string
	// Logf takes a line for every request, and Progressf one for every read of a wait; nil is silence. No secret is in them.
	Logf, Progressf func(ctx context.Context, msg string, fields map[string]any)
}

// AssumeRole is a role to assume.
type AssumeRole struct{ ARN, SessionName, ExternalID string }

// Validate refuses what no client can be made of.
func (cfg Config) Validate() error {
	switch {
	case cfg.AccessKey == "" && cfg.SecretKey != "":
		return errors.New("secret_key is given without access_key: give both, or neither to use the credentials that the AWS SDK finds")
	case cfg.AccessKey != "" && cfg.SecretKey == "":
		return errors.New("access_key is given without secret_key: give both, or neither to use the credentials that the AWS SDK finds")
	case cfg.SessionToken != "" && cfg.AccessKey == "":
		return errors.New("session_token is given without access_key and secret_key, with which it goes")
	case cfg.AssumeRole.ARN == "" && (cfg.AssumeRole.SessionName != "" || cfg.AssumeRole.ExternalID != ""):
		return errors.New("assume_role has no role_arn")
	case cfg.Account != "" && (len(cfg.Account) != accountDigits || strings.Trim(cfg.Account, "0123456789") != ""):
		return fmt.Errorf("account_id %q is not an AWS account's id, which has %d digits", cfg.Account, accountDigits)
	}
	if cfg.Endpoint == "" {
		return nil
	}
	switch u, err := url.Parse(cfg.Endpoint); {
	case err != nil:
		return errors.New("endpoint is not a URL such as https://vpce-0a1b2c3d.sqs.eu-west-1.vpce.amazonaws.com")
	case u.User != nil:
		return errors.New("endpoint has credentials in it, and SQS takes none there: use access_key and secret_key")
	case u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("endpoint %q is not a URL such as https://vpce-0a1b2c3d.sqs.eu-west-1.vpce.amazonaws.com", cfg.Endpoint)
	}
	return nil
}

// accountDigits is the length of an account id.
const accountDigits = 12

// load reads what the configuration leaves out. It makes no request.
func (cfg Config) load(ctx context.Context) (aws.Config, error) {
	options := []func(*awsconfig.LoadOptions) error{
		awsconfig.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(requestTimeout)),
	}
	if cfg.Region != "" {
		options = append(options, awsconfig.WithRegion(cfg.Region))
	}
	if cfg.Profile != "" {
		options = append(options, awsconfig.WithSharedConfigProfile(cfg.Profile))
	}
	if cfg.AccessKey != "" {
		options = append(options, awsconfig.WithCredentialsProvider(
			credentials.NewStaticCredentialsProvider(cfg.AccessKey, cfg.SecretKey, cfg.SessionToken)))
	}
	loaded, err := awsconfig.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return loaded, fmt.Errorf("cannot read the configuration of the AWS SDK: %w", err)
	}
	if loaded.Region == "" {
		return loaded, errors.New("no region is configured: set sqs = { region = \"...\" } in the provider block, or the environment variable AWS_REGION, or a profile that has one")
	}
	switch {
	case cfg.MaxRetries != nil:
		loaded.RetryMaxAttempts = *cfg.MaxRetries + 1
	case loaded.RetryMaxAttempts == 0:
		loaded.RetryMaxAttempts = DefaultMaxRetries + 1
	}
	if cfg.AssumeRole.ARN != "" {
		role := stscreds.NewAssumeRoleProvider(sts.NewFromConfig(loaded), cfg.AssumeRole.ARN, func(o *stscreds.AssumeRoleOptions) {
			o.RoleSessionName = defaultSession
			if cfg.AssumeRole.SessionName != "" {
				o.RoleSessionName = cfg.AssumeRole.SessionName
			}
			if cfg.AssumeRole.ExternalID != "" {
				o.ExternalID = aws.String(cfg.AssumeRole.ExternalID)
			}
		})
		loaded.Credentials = aws.NewCredentialsCache(role)
	}
	return loaded, nil
}
