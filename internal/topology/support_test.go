package topology

import (
	"strings"
	"testing"
)

func TestArgumentsThatABrokerDoesNotCarryOut(t *testing.T) {
	t.Parallel()
	const fits = ""
	for _, test := range []struct {
		kind    QueueType
		key     string
		value   any
		version string
		want    string
	}{
		{Quorum, ArgDelayedRetryType, "all", "4.2.6", "it takes RabbitMQ 4.3 or later, and this is a quorum queue on RabbitMQ 4.2.6, where the broker takes it and does nothing"},
		{Quorum, ArgDelayedRetryType, "all", "4.3.0", fits},
		{Quorum, ArgDelayedRetryType, "all", "5.0", fits},
		{Classic, ArgDelayedRetryMin, int64(1), "4.3.6", "it takes a quorum queue"},
		{Classic, ArgDeliveryLimit, int64(5), "3.10.8", "it takes a quorum queue"},
		{Quorum, ArgDeliveryLimit, int64(5), "3.10.8", fits},
		{Quorum, ArgDeliveryLimit, int64(-1), "3.13.7", "it takes RabbitMQ 4.0 or later, and this is a quorum queue on RabbitMQ 3.13.7, where the broker takes a message away after a single delivery"},
		{Quorum, ArgDeliveryLimit, int64(-1), "4.0.5", fits},
		{Classic, ArgConsumerTimeout, int64(5), "3.11.0", "it takes RabbitMQ 3.12 or later"},
		{Classic, ArgConsumerTimeout, int64(5), "4.2.0", fits},
		{Classic, ArgConsumerTimeout, int64(5), "4.3.0", "it takes a quorum queue"},
		{Quorum, ArgConsumerTimeout, int64(5), "4.3.0", fits},
		{Quorum, ArgMaxPriority, int64(5), "4.3.6", "it takes a classic queue"},
		{Classic, ArgMaxPriority, int64(5), "3.10.8", fits},
		{Classic, ArgDeadLetterStrategy, "at-least-once", "4.0.5", "it takes a quorum queue"},
		{Quorum, ArgOverflow, "reject-publish-dlx", "4.0.5", "the broker takes it and drops the oldest messages instead"},
		{Quorum, ArgOverflow, "reject-publish", "4.0.5", fits},
		{Classic, ArgOverflow, "reject-publish-dlx", "4.0.5", fits},
		{Quorum, "x-queue-mode", "lazy", "4.0.5", "it takes a classic queue"},
		{Quorum, "x-quorum-target-group-size", int64(3), "3.10.8", "it takes RabbitMQ 3.13 or later"},
		{Quorum, "x-anything", "else", "3.10.8", fits},
		{Quorum, ArgDelayedRetryType, "all", "unheard of", fits},
	} {
		t.Run(string(test.kind)+" "+test.key+" "+test.version, func(t *testing.T) {
			t.Parallel()
			err := Queue{Name: "orders", Type: test.kind, Arguments: Arguments{test.key: test.value}}.CheckArguments(test.version)
			switch {
			case err == nil && test.want != fits:
				t.Errorf("no error, want %q", test.want)
			case err != nil && (test.want == fits || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), `of queue "orders"`)):
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestMoreReplicasThanNodes(t *testing.T) {
	t.Parallel()
	for _, key := range []string{ArgQuorumGroupSize, ArgQuorumTargetSize} {
		q := Queue{Name: "orders", Type: Quorum, Arguments: Arguments{key: int64(5)}}
		policy := []Policy{{Name: "more", Pattern: "^orders$", ApplyTo: "queues", Definition: Arguments{policyTargetSize: int64(5)}}}
		for nodes, refused := range map[int]bool{0: false, 1: true, 3: true, 5: false, 7: false} {
			if err := q.CheckReplicas(nodes); (err != nil) != refused {
				t.Errorf("%s with %d nodes: %v", key, nodes, err)
			}
			if err := q.CheckReplicasOf(policy, "", nodes); (err != nil) != refused {
				t.Errorf("a policy with %d nodes: %v", nodes, err)
			}
		}
		if err := q.CheckReplicas(1); !strings.Contains(err.Error(), key+` = 5 of queue "orders": the cluster has 1 node,`) {
			t.Errorf("got %v", err)
		}
		if err := q.CheckReplicasOf(policy, "", 3); !strings.Contains(err.Error(), `policy "more" sets target-group-size to 5: the cluster has 3 nodes,`) {
			t.Errorf("got %v", err)
		}
		q.Type = Classic // which has no replicas
		if q.CheckReplicas(1) != nil || q.CheckReplicasOf(policy, "", 1) != nil {
			t.Error("a classic queue is refused")
		}
	}
}

// TestContractFitsEveryBroker: no convention computes an argument that any supported broker does not carry out.
func TestContractFitsEveryBroker(t *testing.T) {
	t.Parallel()
	for _, convention := range Conventions() {
		spec := Spec{Identity: Identity{Topic: "orders", Convention: convention}, DeadLetterQueue: Identity{Topic: "orders", Convention: convention}.DeadLetterQueueName()}
		objects, err := spec.Build()
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range objects.Queues {
			for _, version := range []string{"3.10.8", "4.0.5", "4.3.6"} {
				if err := q.CheckArguments(version); err != nil {
					t.Errorf("%s on %s: %v", convention, version, err)
				}
			}
		}
	}
}
