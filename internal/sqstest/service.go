package sqstest

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

const (
	// region and account are those of every emulator; the credentials are believed.
	region    = "us-east-1"
	account   = "000000000000"
	accessKey = "test"
	secretKey = "test"
)

// Service is an emulator that runs.
type Service struct {
	emulator *emulator
	process  *process
	endpoint string
}

// Start starts an emulator, which has to be installed: see [Install]. Whoever starts one stops it.
func Start(ctx context.Context, name Name) (*Service, error) {
	e, err := find(name)
	if err != nil {
		return nil, err
	}
	dir, err := npmDir()
	if err != nil {
		return nil, err
	}
	p, endpoint, err := startProcess(ctx, dir, e.script)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	return &Service{emulator: e, process: p, endpoint: endpoint}, nil
}

// Stop ends the emulator and waits for it.
func (s *Service) Stop() error { return s.process.stop() }

// shared are the emulators of this test binary: they live as long as it does.
//
//nolint:gochecknoglobals // one process for all tests of a binary
var shared = map[Name]func() (*Service, error){
	LocalAWSSQS: sync.OnceValues(func() (*Service, error) { return startShared(LocalAWSSQS) }),
	FauxQS:      sync.OnceValues(func() (*Service, error) { return startShared(FauxQS) }),
}

func startShared(name Name) (*Service, error) {
	ctx := context.Background() // not the first test's: others use it after that
	if err := Install(ctx); err != nil {
		return nil, err
	}
	return Start(ctx, name)
}

// Local returns local-aws-sqs, for tests of the control plane.
func Local(t testing.TB) *Service {
	t.Helper()
	return use(t, LocalAWSSQS)
}

// Faux returns fauxqs, for tests of the data plane.
func Faux(t testing.TB) *Service {
	t.Helper()
	return use(t, FauxQS)
}

func use(t testing.TB, name Name) *Service {
	t.Helper()
	if os.Getenv("TF_ACC") == "" {
		if err := installed(); err != nil {
			t.Skipf("%s is not installed (%v): run make test", name, err)
		}
	}
	s, err := shared[name]()
	if err != nil {
		t.Fatal(err)
	}
	s.showLog(t)
	return s
}

// showLog shows the end of the emulator's log where the test fails.
func (s *Service) showLog(t testing.TB) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("--- end of the log of %s ---\n%s", s.Name(), s.process.log)
		}
	})
}

// Name is the emulator's.
func (s *Service) Name() Name { return s.emulator.name }

// Endpoint is the address, such as "http://127.0.0.1:21234".
func (s *Service) Endpoint() string { return s.endpoint }

// Region is the region that queues are in.
func (s *Service) Region() string { return region }

// Account is the account that queues belong to.
func (s *Service) Account() string { return account }

// Credentials are believed, whatever they are; tests that write them somewhere write these.
func (s *Service) Credentials() (accessKeyID, secretAccessKey string) { return accessKey, secretKey }

// QueueURL is the address of a queue.
func (s *Service) QueueURL(queue string) string { return s.endpoint + "/" + account + "/" + queue }

// QueueARN is the resource name of a queue.
func (s *Service) QueueARN(queue string) string {
	return "arn:aws:sqs:" + region + ":" + account + ":" + queue
}

// Config is a configuration of the AWS SDK that reaches the emulator and nothing else.
func (s *Service) Config() aws.Config {
	return aws.Config{
		Region: region, BaseEndpoint: aws.String(s.endpoint),
		Credentials: credentials.NewStaticCredentialsProvider(accessKey, secretKey, ""),
		APIOptions:  s.emulator.apiOptions,
	}
}

// Client is a client of the AWS SDK. Where the emulator needs help to say what AWS says (see emulator.go), it gives it.
func (s *Service) Client(t testing.TB, options ...func(*sqs.Options)) *sqs.Client {
	t.Helper()
	return sqs.NewFromConfig(s.Config(), options...)
}
