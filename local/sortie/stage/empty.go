package stage

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// ErrRetained is returned by Empty for a stage whose data are kept when it is destroyed.
var ErrRetained = errors.New(`the stage retains its data: set "retain" to false in its entry of cdk.json and deploy, then try again`)

// Empty drains the stage, deletes every version of every object in the stack's buckets and
// aborts unfinished uploads, because CloudFormation deletes only empty buckets. It returns the
// number of deleted versions. A stage with outputs in R2 has no buckets. If the stack retains
// its table or a bucket, Empty returns ErrRetained and changes nothing.
func (s *Stage) Empty(ctx context.Context) (deleted int, err error) {
	for _, r := range slices.Concat(s.Template.Of("DynamoDB::Table"), s.Template.Of("S3::Bucket")) {
		if r.Retained() {
			return 0, ErrRetained
		}
	}
	buckets, err := s.physical(ctx, "S3::Bucket")
	if err != nil {
		return 0, err
	}
	if err := s.Drain(ctx); err != nil {
		return 0, err
	}
	// Path style avoids DNS names for an emulator's buckets.
	client := s3.NewFromConfig(s.cfg, func(o *s3.Options) { o.UsePathStyle = s.cfg.BaseEndpoint != nil })
	for _, bucket := range buckets {
		n, err := emptyBucket(ctx, client, bucket)
		deleted += n
		if err != nil {
			return deleted, fmt.Errorf("cannot empty the bucket %s: %w", bucket, err)
		}
	}
	return deleted, nil
}

// emptyBucket deletes page by page. It always reads the first page, because it deletes each
// page before it reads the next one.
func emptyBucket(ctx context.Context, client *s3.Client, bucket string) (deleted int, err error) {
	for {
		page, err := client.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: &bucket})
		if _, gone := errors.AsType[*types.NoSuchBucket](err); gone {
			return deleted, nil
		}
		if err != nil {
			return deleted, err
		}
		var objects []types.ObjectIdentifier
		for _, v := range page.Versions {
			objects = append(objects, types.ObjectIdentifier{Key: v.Key, VersionId: v.VersionId})
		}
		for _, m := range page.DeleteMarkers {
			objects = append(objects, types.ObjectIdentifier{Key: m.Key, VersionId: m.VersionId})
		}
		if len(objects) == 0 {
			return deleted, abortUploads(ctx, client, bucket)
		}
		done, err := client.DeleteObjects(ctx, &s3.DeleteObjectsInput{
			Bucket: &bucket, Delete: &types.Delete{Objects: objects, Quiet: aws.Bool(true)},
		})
		if err != nil {
			return deleted, err
		}
		if len(done.Errors) > 0 {
			first := done.Errors[0]
			return deleted, fmt.Errorf("%d of %d objects: %s: %s", len(done.Errors), len(objects), aws.ToString(first.Key), aws.ToString(first.Code))
		}
		deleted += len(objects)
	}
}

func abortUploads(ctx context.Context, client *s3.Client, bucket string) error {
	pages := s3.NewListMultipartUploadsPaginator(client, &s3.ListMultipartUploadsInput{Bucket: &bucket})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, upload := range page.Uploads {
			if _, err := client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
				Bucket: &bucket, Key: upload.Key, UploadId: upload.UploadId,
			}); err != nil {
				return err
			}
		}
	}
	return nil
}
