package kubernetes

import (
	"encoding/base64"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// EKSTokens returns a function that signs bearer tokens for an EKS cluster with the credentials
// of a configuration. A token is the presigned URL of a call of STS, with which the cluster
// reads from STS who signed it. The function makes no call, and the presigned call needs no
// permission. A token is a secret.
func EKSTokens(cfg aws.Config, cluster string) func(*http.Request) (string, error) {
	signer := sts.NewPresignClient(sts.NewFromConfig(cfg))
	return func(r *http.Request) (string, error) {
		signed, err := signer.PresignGetCallerIdentity(r.Context(), &sts.GetCallerIdentityInput{}, func(o *sts.PresignOptions) {
			o.ClientOptions = append(o.ClientOptions, sts.WithAPIOptions(
				smithyhttp.SetHeaderValue("x-k8s-aws-id", cluster), smithyhttp.SetHeaderValue("X-Amz-Expires", "60")))
		})
		if err != nil {
			return "", err
		}
		return "k8s-aws-v1." + base64.RawURLEncoding.EncodeToString([]byte(signed.URL)), nil
	}
}
