package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/jsii-runtime-go"

	"github.com/sortie-dev/sortie/shared/adapter/secrets"
)

// The days of the buckets' lifecycle rules. Sortie deletes objects itself. The rules delete the
// objects that it failed to delete.
const (
	uploadDays     = 15 // an attempt takes at most 14 days
	unfinishedDays = 2
	acceptedDays   = 3650 // ten years: pinned runs, and the newest of jobs, have no end
)

// The objects of the buckets: outputs and other files of workers below exports/, and in the
// accepted bucket the logs of each tenant.
const (
	exportsObjects = "exports/*"
	logObjects     = "*/logs/*"
)

// firstKey is the name of the access keys that a stage has from its first deployment.
const firstKey = "1"

// buckets identifies the buckets for other resources.
type buckets struct{ uploads, accepted, endpoint string }

// addOutputs names the buckets or, with outputs=s3, adds them.
//
// With outputs=s3 it also adds two users: one for Sortie and one for workers. Users are needed
// because a URL that a role's session presigned expires with the session, and because workers
// run outside of AWS. The user for workers may write below exports/ and may neither read nor
// list. CloudFormation copies their keys into the secret.
func (b *builder) addOutputs() {
	if b.settings.Outputs == R2 {
		b.buckets = buckets{b.settings.UploadsBucket, b.settings.AcceptedBucket, b.settings.OutputsEndpoint}
		return
	}
	uploads := b.newBucket("Uploads", uploadDays)
	accepted := b.newBucket("Accepted", acceptedDays)
	b.buckets = buckets{*uploads.BucketName(), *accepted.BucketName(), "https://s3." + *b.stack.Region() + "." + *b.stack.UrlSuffix()}
	if b.settings.LocalStack != "" {
		b.buckets.endpoint = b.settings.LocalStack
	}
	if b.settings.OutputsEndpoint != "" {
		b.buckets.endpoint = b.settings.OutputsEndpoint
	}
	inside := func(b awss3.Bucket, objects string) string { return *b.BucketArn() + "/" + objects }
	ownerID, ownerKey := b.newBucketUser("OutputsUser",
		statement{actions: []string{"s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject", "s3:PutObject"}, resources: []string{
			inside(uploads, exportsObjects), inside(accepted, exportsObjects), inside(accepted, logObjects),
		}},
		statement{actions: []string{"s3:ListMultipartUploadParts"}, resources: []string{inside(accepted, exportsObjects)}},
		statement{actions: []string{"s3:ListBucket", "s3:ListBucketMultipartUploads"}, resources: []string{*uploads.BucketArn(), *accepted.BucketArn()}},
	)
	workerID, workerKey := b.newBucketUser("WorkerUser",
		statement{actions: []string{"s3:AbortMultipartUpload", "s3:PutObject"}, resources: []string{inside(uploads, exportsObjects)}},
	)
	keys := secrets.Outputs{
		Region: *b.stack.Region(), AccessKeyID: ownerID, SecretAccessKey: ownerKey,
		WorkerAccessKeyID: workerID, WorkerSecretAccessKey: workerKey,
	}
	if b.settings.LocalStack != "" { // it accepts signatures with this key only
		keys.AccessKeyID, keys.SecretAccessKey = "test", "test"
		keys.WorkerAccessKeyID, keys.WorkerSecretAccessKey = "test", "test"
	}
	b.fillOutputsSecret(keys)
}

// newBucket adds a private bucket. Objects expire after the number of days.
func (b *builder) newBucket(id string, days int) awss3.Bucket {
	return awss3.NewBucket(b.stack, jsii.String(id), &awss3.BucketProps{
		BlockPublicAccess: awss3.BlockPublicAccess_BLOCK_ALL(),
		ObjectOwnership:   awss3.ObjectOwnership_BUCKET_OWNER_ENFORCED,
		Encryption:        awss3.BucketEncryption_S3_MANAGED,
		EnforceSSL:        jsii.Bool(true),
		MinimumTLSVersion: jsii.Number(1.2),
		RemovalPolicy:     b.removal(),
		LifecycleRules: &[]*awss3.LifecycleRule{{
			Id:                                  jsii.String("expire"),
			Expiration:                          awscdk.Duration_Days(num(days)),
			AbortIncompleteMultipartUploadAfter: awscdk.Duration_Days(num(unfinishedDays)),
		}},
	})
}

// newBucketUser adds a user with exactly the statements, and its access keys. It returns the
// first key. The others remain valid for workers and URLs that use them.
func (b *builder) newBucketUser(id string, allow ...statement) (keyID, secret string) {
	user := awsiam.NewCfnUser(b.stack, jsii.String(id), &awsiam.CfnUserProps{
		Policies: []any{&awsiam.CfnUser_PolicyProperty{PolicyName: jsii.String("outputs"), PolicyDocument: document(allow)}},
	})
	for i, name := range b.settings.OutputsKeys {
		props := &awsiam.CfnAccessKeyProps{UserName: user.Ref()}
		if name == firstKey { // CloudFormation replaces a key whose id or serial changes
			name, props.Serial = "", num(1)
		}
		key := awsiam.NewCfnAccessKey(b.stack, jsii.String(id+"Key"+name), props)
		if i == 0 {
			keyID, secret = *key.Ref(), *key.AttrSecretAccessKey()
		}
	}
	return keyID, secret
}
