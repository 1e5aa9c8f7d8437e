package sqstest

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go/middleware"
)

// Name is the name of an emulator.
type Name string

// The emulators.
const (
	LocalAWSSQS Name = "local-aws-sqs"
	FauxQS      Name = "fauxqs"
)

// emulator is how an emulator is run.
type emulator struct {
	name Name
	// script is its program below npm/.
	script string
	// apiOptions help clients of the AWS SDK where the emulator does not understand them.
	apiOptions []func(*middleware.Stack) error
}

// emulators are all of them.
func emulators() []*emulator {
	return []*emulator{
		{name: LocalAWSSQS, script: "local.mjs", apiOptions: []func(*middleware.Stack) error{askTheOldWay}},
		{name: FauxQS, script: "faux.mjs"},
	}
}

func find(name Name) (*emulator, error) {
	for _, e := range emulators() {
		if e.name == name {
			return e, nil
		}
	}
	return nil, fmt.Errorf("there is no emulator %q", name)
}

// askTheOldWay asks for a message's system attributes by their older name too: local-aws-sqs knows no other.
func askTheOldWay(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("askTheOldWay",
		func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			if receive, ok := in.Parameters.(*sqs.ReceiveMessageInput); ok {
				asked := *receive
				asked.AttributeNames = []types.QueueAttributeName{types.QueueAttributeNameAll} //nolint:staticcheck // deprecated, and that is the point
				in.Parameters = &asked
			}
			return next.HandleInitialize(ctx, in)
		}), middleware.Before)
}
