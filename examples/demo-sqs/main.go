// Command demo-sqs shows the whole idea on Amazon SQS, without an AWS account:
// Terraform provisions a topic with its dead-letter queue, a small consumer lives
// on it without a permission to send, a plan catches an attribute that was
// changed by hand, and an operator deals with the dead letters. It cleans up
// after itself, also when it fails or is interrupted.
//
// The service is an emulator (fauxqs) on loopback: see internal/sqstest.
package main

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/redeliver/terraform-provider-redeliver/examples/internal/demo"
	"github.com/redeliver/terraform-provider-redeliver/internal/sqstest"
	"github.com/redeliver/terraform-provider-redeliver/redeliver"
)

func main() { demo.Main(run) }

// delays are the quickstart's, shortened so that nobody has to wait for minutes.
const delays = `["1s", "2s"]`

func run(ctx context.Context) (err error) {
	cli, err := demo.FindCLI()
	if err != nil {
		return err
	}
	demo.Heading("1. Amazon SQS, or what stands in for it")
	if err := sqstest.Install(ctx); err != nil {
		return err
	}
	service, err := sqstest.Start(ctx, sqstest.FauxQS)
	if err != nil {
		return err
	}
	defer demo.CleanUp(&err, service.Stop)
	fmt.Printf("%s at %s, account %s\n", service.Name(), service.Endpoint(), service.Account())

	demo.Heading("2. " + cli.Name + " apply provisions the topic (examples/quickstart-sqs)")
	key, secret := service.Credentials()
	ws, err := demo.New(ctx, cli, "quickstart-sqs",
		"TF_VAR_delays="+delays, "AWS_ENDPOINT_URL_SQS="+service.Endpoint(), "AWS_ACCOUNT_ID="+service.Account(),
		"AWS_REGION="+service.Region(), "AWS_ACCESS_KEY_ID="+key, "AWS_SECRET_ACCESS_KEY="+secret, "AWS_PROFILE=", "AWS_SESSION_TOKEN=",
	)
	if err != nil {
		return err
	}
	defer demo.CleanUp(&err, ws.Close)
	if err := ws.Run(ctx, "plan", "-input=false", "-out=plan"); err != nil {
		return err
	}
	if err := ws.Show(ctx, "apply", "plan"); err != nil {
		return err
	}
	manifest, policy, err := outputs(ctx, ws)
	if err != nil {
		return err
	}

	demo.Heading("3. A consumer that may receive from one queue, and send to none")
	fmt.Printf("its role's policy:\n%s\n\n", policy)
	if err := consume(ctx, service, manifest); err != nil {
		return err
	}

	demo.Heading("4. " + cli.Name + " plan finds nothing to do")
	if err := ws.Show(ctx, "plan"); err != nil {
		return err
	}

	demo.Heading("5. Somebody changes the visibility timeout by hand")
	url := manifest.Contract().WorkQueue.URL
	fmt.Println("orders: VisibilityTimeout 30 -> 5, which is less than a handler may take")
	_, err = sqs.NewFromConfig(service.Config()).SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{
		QueueUrl: &url, Attributes: map[string]string{"VisibilityTimeout": "5"},
	})
	if err != nil {
		return err
	}
	if err := ws.Show(ctx, "plan"); err != nil {
		return err
	}

	demo.Heading("6. An operator deals with the dead letters, and everything is destroyed")
	if err := handleDead(ctx, service, manifest); err != nil {
		return err
	}
	fmt.Println("$ " + cli.Name + " destroy, which refuses a queue that holds messages ...")
	if err := ws.Run(ctx, "destroy", "-input=false", "-auto-approve", "-no-color"); err != nil {
		return err
	}
	fmt.Println("both queues are gone.")
	return nil
}

// outputs reads what the applied configuration computed for the consumer.
func outputs(ctx context.Context, ws *demo.Workspace) (manifest redeliver.Manifest, policy string, err error) {
	var outputs struct {
		Manifest struct {
			Value string `json:"value"`
		} `json:"manifest"`
		Policy struct {
			Value string `json:"value"`
		} `json:"consumer_policy"`
	}
	if err := ws.Outputs(ctx, &outputs); err != nil {
		return redeliver.Manifest{}, "", err
	}
	manifest, err = redeliver.ParseManifest([]byte(outputs.Manifest.Value))
	return manifest, outputs.Policy.Value, err
}
