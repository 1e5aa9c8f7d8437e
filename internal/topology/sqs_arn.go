package topology

import (
	"fmt"
	"slices"
	"strings"
)

// awsPartition is one of AWS's partitions: what its regions start with, and what its hosts end in.
type awsPartition struct{ name, regions, domain string }

// awsPartitions are those whose regions say so by their names. The last one has all others.
var awsPartitions = []awsPartition{
	{"aws-cn", "cn-", "amazonaws.com.cn"},
	{"aws-us-gov", "us-gov-", "amazonaws.com"},
	{"aws-iso-b", "us-isob-", "sc2s.sgov.gov"},
	{"aws-iso-e", "eu-isoe-", "cloud.adc-e.uk"},
	{"aws-iso-f", "us-isof-", "csp.hci.ic.gov"},
	{"aws-iso", "us-iso-", "c2s.ic.gov"},
	{"aws-eusc", "eusc-", "amazonaws.eu"},
	{"aws", "", "amazonaws.com"},
}

// SQSPartition is the partition of a region: "aws", "aws-cn", "aws-us-gov" and so on.
func SQSPartition(region string) string {
	of := slices.IndexFunc(awsPartitions, func(p awsPartition) bool { return strings.HasPrefix(region, p.regions) })
	return awsPartitions[of].name // the last one has every region
}

func (id SQSIdentity) partition() string {
	if id.Partition == "" {
		return SQSPartition(id.Region)
	}
	return id.Partition
}

// Placed reports whether it is known where the queues are, so that they have ARNs and URLs.
func (id SQSIdentity) Placed() bool { return id.Region != "" && id.Account != "" }

// ARN is the Amazon Resource Name of a queue beside the topic's; "" where region or account are not known.
func (id SQSIdentity) ARN(queueName string) string {
	if !id.Placed() || queueName == "" {
		return ""
	}
	return fmt.Sprintf("arn:%s:sqs:%s:%s:%s", id.partition(), id.Region, id.Account, queueName)
}

// URL is that of a queue beside the topic's, at an endpoint or, where that is "", at AWS's own; "" where region or account
// are not known.
func (id SQSIdentity) URL(queueName, endpoint string) string {
	if !id.Placed() || queueName == "" {
		return ""
	}
	if endpoint == "" {
		endpoint = "https://sqs." + id.Region + "." + id.domain()
	}
	return strings.TrimRight(endpoint, "/") + "/" + id.Account + "/" + queueName
}

func (id SQSIdentity) domain() string {
	for _, p := range awsPartitions {
		if p.name == id.partition() {
			return p.domain
		}
	}
	return awsPartitions[len(awsPartitions)-1].domain
}

// ParseSQSARN reads the ARN of a queue: where it is, and its name. Of the identity nothing else is set but whether the
// queue is FIFO.
func ParseSQSARN(text string) (where SQSIdentity, queueName string, err error) {
	parts := strings.Split(text, ":")
	if len(parts) != 6 || parts[0] != "arn" || parts[2] != "sqs" {
		return SQSIdentity{}, "", fmt.Errorf("%q is not the ARN of a queue, which looks like arn:aws:sqs:us-east-1:123456789012:orders", text)
	}
	where = SQSIdentity{Partition: parts[1], Region: parts[3], Account: parts[4], FIFO: strings.HasSuffix(parts[5], fifoSuffix)}
	if where.Partition == "" || !where.Placed() {
		return SQSIdentity{}, "", fmt.Errorf("ARN %q: it lacks the partition, the region or the account", text)
	}
	if err := where.validateWhere(); err != nil {
		return SQSIdentity{}, "", fmt.Errorf("ARN %q: %w", text, err)
	}
	if err := where.validateSQSQueue("queue", parts[5]); err != nil {
		return SQSIdentity{}, "", fmt.Errorf("ARN %q: %w", text, err)
	}
	return where, parts[5], nil
}

// validateWhere refuses a region or an account that is none; neither need be known.
func (id SQSIdentity) validateWhere() error {
	switch {
	case id.Account != "" && !awsAccount.MatchString(id.Account):
		return fmt.Errorf("account id %q: an AWS account id has 12 digits, leading zeros included; write it as text", id.Account)
	case id.Region != "" && !awsRegion.MatchString(id.Region):
		return fmt.Errorf("region %q: a region is written such as us-east-1", id.Region)
	case id.Partition != "" && !awsRegion.MatchString(id.Partition):
		return fmt.Errorf("partition %q: a partition is written such as aws or aws-cn", id.Partition)
	}
	return nil
}
