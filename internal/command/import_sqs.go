package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"golang.org/x/sync/errgroup"

	"github.com/redeliver/terraform-provider-redeliver/internal/sqsadmin"
	"github.com/redeliver/terraform-provider-redeliver/internal/sqsapi"
	"github.com/redeliver/terraform-provider-redeliver/internal/topology"
)

func (a *app) importSQS(ctx context.Context, f importFlags) error {
	chosen, err := f.chosen(topology.SQSConventions())
	if err != nil {
		return err
	}
	v, err := a.sqsRegion(ctx, f.prefix)
	if err != nil {
		return err
	}
	w := &sqsConfigWriter{v: v, configFile: newConfigFile()}
	w.notes = v.unread
	topics := []string{}
	for _, t := range v.topics(chosen, f.group) {
		if err := w.topic(ctx, t); err != nil {
			return err
		}
		topics = append(topics, t.Topic)
	}
	where := "region " + v.region
	if v.where.Account != "" {
		where += " of account " + v.where.Account
	}
	return a.printConfig(w.configFile, topics, where, map[string]any{"region": v.region, "account": v.where.Account})
}

// sqsState is what an account has in a region, as far as topics are recognised by it.
type sqsState struct {
	*amazonSQS
	region string
	// where has region, account and partition; nothing where no queue was listed, which tells the account.
	where topology.SQSIdentity
	// queues are those that could be read, by name, without their tags, and urls those of all.
	queues map[string]topology.SQSAttributes
	urls   map[string]string
	// unread says what could not, a sentence each.
	unread []string
}

// sqsRegion reads the queues whose names start with a prefix, and those that they redrive to.
func (a *app) sqsRegion(ctx context.Context, prefix string) (*sqsState, error) {
	if a.conn.region == "" {
		settings, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithSharedConfigProfile(a.conn.profile))
		if err != nil {
			return nil, fmt.Errorf("cannot read the configuration of the AWS SDK: %w", err)
		}
		if a.conn.region = settings.Region; settings.Region == "" {
			return nil, errors.New("no region is said: give --region, or set AWS_REGION, or name a profile that has one")
		}
	}
	b, err := a.sqs(ctx, topology.Manifest{})
	if err != nil {
		return nil, err
	}
	v := &sqsState{amazonSQS: b, region: a.conn.region, queues: map[string]topology.SQSAttributes{}, urls: map[string]string{}}
	if err := v.list(ctx, prefix); err != nil {
		return nil, err
	}
	if err := v.read(ctx, slices.Collect(maps.Keys(v.urls))); err != nil {
		return nil, err
	}
	var targets []string
	for name := range v.queues {
		target := v.target(name)
		if _, listed := v.urls[target]; target != "" && !listed {
			v.urls[target] = strings.TrimSuffix(v.urls[name], name) + target
			targets = append(targets, target)
		}
	}
	return v, v.read(ctx, targets)
}

// list finds the URLs of queues, which tell the account too.
func (v *sqsState) list(ctx context.Context, prefix string) error {
	in := &sqs.ListQueuesInput{MaxResults: aws.Int32(1000)}
	if prefix != "" {
		in.QueueNamePrefix = &prefix
	}
	for pages := sqs.NewListQueuesPaginator(v.client, in); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			advice := sqsAdvice(ctx, "", err)
			if denied, _ := sqsapi.Denied(err); denied {
				advice = fmt.Sprintf("the credentials lack %s, or a policy denies it", topology.ActionListQueues)
			}
			if advice != "" {
				advice = "; " + advice
			}
			return fmt.Errorf("listing the queues of region %s: %w%s", v.region, sqsapi.Said(err), advice)
		}
		for _, url := range page.QueueUrls {
			parts := strings.Split(url, "/")
			if len(parts) < 2 {
				continue
			}
			v.urls[parts[len(parts)-1]] = url
			v.where = topology.SQSIdentity{Region: v.region, Account: parts[len(parts)-2], Partition: topology.SQSPartition(v.region)}
		}
	}
	return nil
}

// read reads queues. What is gone by now is left out, and so is, with a note, what the credentials do not reach.
func (v *sqsState) read(ctx context.Context, names []string) error {
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range names {
		q := topology.ManifestQueue{Name: name, URL: v.urls[name], ARN: v.where.ARN(name)}
		group.Go(func() error {
			live, err := v.attributes(ctx, q)
			denied, _ := sqsapi.Denied(err)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, sqsadmin.ErrNotFound):
			case denied:
				v.unread = append(v.unread, err.Error())
			case err != nil:
				return err
			default:
				v.queues[name] = live.Attributes
			}
			return nil
		})
	}
	err := group.Wait()
	slices.Sort(v.unread)
	return err
}

// target is the name of the queue that a queue redrives to; "" where it is elsewhere or there is none.
func (v *sqsState) target(name string) string {
	arn, _, _ := v.queues[name].RedriveTarget()
	if _, target, err := topology.ParseSQSARN(arn); err == nil && v.where.ARN(target) == arn {
		return target
	}
	return ""
}
