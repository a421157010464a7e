package stage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo/schema"
	"github.com/sortie-dev/sortie/shared/domain/budget"
)

// Restoration describes a restore of a stage's table to an earlier time, under another name.
type Restoration struct {
	// Target is the name of the restored table. If it exists, Restore completes it and does not
	// restore it again.
	Target string
	// At is the time to restore, at most 35 days ago. Zero means the latest possible time,
	// about five minutes ago.
	At time.Time
}

// Restore restores the stage's table and adds what DynamoDB does not restore: the stream, the
// time to live, point-in-time recovery, deletion protection and tags. It waits until the table
// is usable and returns the ARN of its stream, which is the setting tableStream of the next
// deployment. It calls say with each step.
func (s *Stage) Restore(ctx context.Context, r Restoration, say func(step string)) (stream string, err error) {
	source, err := s.output("TableName")
	if err != nil {
		return "", err
	}
	if r.Target == source {
		return "", fmt.Errorf("target %q is the stage's present table, want another name", r.Target)
	}
	t := restored{Stage: s, client: dynamodb.NewFromConfig(s.cfg), name: r.Target, source: source}
	if _, err := t.describe(ctx); errors.Is(err, errNoTable) {
		say("restoring " + source + " to " + r.Target)
		err = t.begin(ctx, r.At)
		if err != nil {
			return "", err
		}
	} else if err != nil {
		return "", err
	}
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"waiting until the table is active", t.awaitActive},
		{"enabling the time to live", t.addTTL},
		{"enabling the stream", t.addStream},
		{"copying deletion protection", t.protect},
		{"enabling point-in-time recovery", t.addRecovery},
		{"copying the tags", t.tag},
	} {
		say(step.what)
		if err := step.do(ctx); err != nil {
			return "", fmt.Errorf("%s: %w", step.what, err)
		}
	}
	now, err := t.describe(ctx)
	if err != nil {
		return "", err
	}
	return aws.ToString(now.LatestStreamArn), nil
}

// Claim permits the sweep to destroy machines without a record in the stage's table. They
// belong to runs that were lost when the table was emptied or restored.
func (s *Stage) Claim(ctx context.Context) error {
	table, err := s.output("TableName")
	if err != nil {
		return err
	}
	store, err := dynamo.New(dynamodb.NewFromConfig(s.cfg), dynamo.Config{Table: table, Clock: s.clock})
	if err != nil {
		return fmt.Errorf("cannot use the table %s: %w", table, err)
	}
	return store.Claim(ctx)
}

// Account returns an account in the stage's table, or port.ErrNotFound.
func (s *Stage) Account(ctx context.Context, tenant, scope string) (budget.Account, error) {
	table, err := s.output("TableName")
	if err != nil {
		return budget.Account{}, err
	}
	store, err := dynamo.New(dynamodb.NewFromConfig(s.cfg), dynamo.Config{Table: table, Clock: s.clock})
	if err != nil {
		return budget.Account{}, fmt.Errorf("cannot use the table %s: %w", table, err)
	}
	return store.Account(ctx, tenant, scope)
}

var errNoTable = errors.New("there is no table of this name")

// restored is the table of a restoration.
type restored struct {
	*Stage
	client       *dynamodb.Client
	name, source string
}

func (t *restored) describe(ctx context.Context) (*types.TableDescription, error) {
	return t.describeTable(ctx, t.name)
}

func (t *restored) describeTable(ctx context.Context, name string) (*types.TableDescription, error) {
	out, err := t.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
	if _, unknown := errors.AsType[*types.ResourceNotFoundException](err); unknown {
		return nil, fmt.Errorf("%s: %w", name, errNoTable)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot describe the table %s: %w", name, err)
	}
	return out.Table, nil
}

func (t *restored) begin(ctx context.Context, at time.Time) error {
	input := &dynamodb.RestoreTableToPointInTimeInput{SourceTableName: &t.source, TargetTableName: &t.name}
	if at.IsZero() {
		input.UseLatestRestorableTime = aws.Bool(true)
	} else {
		input.RestoreDateTime = &at
	}
	if _, err := t.client.RestoreTableToPointInTime(ctx, input); err != nil {
		return fmt.Errorf("cannot restore the table %s: %w", t.source, err)
	}
	return nil
}

// awaitActive waits until the table and its indexes are active.
func (t *restored) awaitActive(ctx context.Context) error {
	for {
		now, err := t.describe(ctx)
		if err != nil {
			return err
		}
		ready := now.TableStatus == types.TableStatusActive
		for _, index := range now.GlobalSecondaryIndexes {
			ready = ready && index.IndexStatus == types.IndexStatusActive
		}
		if ready {
			return nil
		}
		if err := t.pause(ctx); err != nil {
			return err
		}
	}
}

func (t *restored) addTTL(ctx context.Context) error {
	now, err := t.client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &t.name})
	if err != nil {
		return err
	}
	switch now.TimeToLiveDescription.TimeToLiveStatus {
	case types.TimeToLiveStatusEnabled, types.TimeToLiveStatusEnabling:
		return nil
	default:
	}
	_, err = t.client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               &t.name,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(schema.TTL), Enabled: aws.Bool(true)},
	})
	return err
}

func (t *restored) addStream(ctx context.Context) error {
	now, err := t.describe(ctx)
	if err != nil {
		return err
	}
	if now.StreamSpecification != nil && aws.ToBool(now.StreamSpecification.StreamEnabled) {
		return nil
	}
	if _, err := t.client.UpdateTable(ctx, &dynamodb.UpdateTableInput{
		TableName:           &t.name,
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: schema.StreamView},
	}); err != nil {
		return err
	}
	return t.awaitActive(ctx)
}

// protect enables deletion protection if the source is protected or no longer exists.
func (t *restored) protect(ctx context.Context) error {
	source, err := t.describeTable(ctx, t.source)
	if errors.Is(err, errNoTable) {
		source, err = &types.TableDescription{DeletionProtectionEnabled: aws.Bool(true)}, nil
	}
	if err != nil || !aws.ToBool(source.DeletionProtectionEnabled) {
		return err
	}
	if _, err := t.client.UpdateTable(ctx, &dynamodb.UpdateTableInput{
		TableName: &t.name, DeletionProtectionEnabled: source.DeletionProtectionEnabled,
	}); err != nil {
		return err
	}
	return t.awaitActive(ctx)
}

func (t *restored) addRecovery(ctx context.Context) error {
	_, err := t.client.UpdateContinuousBackups(ctx, &dynamodb.UpdateContinuousBackupsInput{
		TableName:                        &t.name,
		PointInTimeRecoverySpecification: &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(true)},
	})
	return err
}

// tag copies the tags of the source and adds the tags of the stage. AWS reserves the prefix
// "aws:".
func (t *restored) tag(ctx context.Context) error {
	now, err := t.describe(ctx)
	if err != nil {
		return err
	}
	tags := []types.Tag{{Key: aws.String("project"), Value: aws.String("sortie")}, {Key: aws.String("stage"), Value: &t.Name}}
	source, err := t.describeTable(ctx, t.source)
	if err == nil {
		have, err := t.client.ListTagsOfResource(ctx, &dynamodb.ListTagsOfResourceInput{ResourceArn: source.TableArn})
		if err != nil {
			return err
		}
		for _, tag := range have.Tags {
			if key := aws.ToString(tag.Key); !strings.HasPrefix(key, "aws:") && key != "project" && key != "stage" {
				tags = append(tags, tag)
			}
		}
	} else if !errors.Is(err, errNoTable) {
		return err
	}
	_, err = t.client.TagResource(ctx, &dynamodb.TagResourceInput{ResourceArn: now.TableArn, Tags: tags})
	return err
}
