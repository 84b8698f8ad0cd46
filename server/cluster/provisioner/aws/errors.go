package aws

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aws/smithy-go"

	"ordain.dev/ordain/server/cluster/provisioner/cloud"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
)

// code returns the code of an error of EC2, or "".
func code(err error) string {
	var e smithy.APIError
	if errors.As(err, &e) {
		return e.ErrorCode()
	}
	return ""
}

// mask removes the secrets from an error.
func (a *account) mask(err error) error { return cloud.Mask(err, a.call, a.secret) }

// wrongField says which field of the provider an error of EC2 is about, by the beginning of its code.
var wrongField = []struct{ code, field, wrong string }{
	{"InvalidKeyPair", "ssh_keypair", "names no key pair of this region"},
	{"InvalidSecurityGroup", "security_group_ids", "has no such security group"},
	{"InvalidGroup", "security_groups or security_group_ids", "has no such security group"},
	{"InvalidSubnet", "subnet_id", "names no subnet of this region"},
	{"InvalidPlacementGroup", "placement_group", "names no placement group of this region"},
	{"InvalidAvailabilityZone", "availability_zone", "names no zone of this region"},
	{"InvalidZone", "availability_zone", "names no zone of this region"},
	{"InvalidIamInstanceProfile", "iam_instance_profile", "names no profile of this account"},
	{"VPCIdNotSpecified", "subnet_id", "is needed, since the region has no default VPC"},
	{"InvalidBlockDeviceMapping", "aws_root_ebs_size", "does not fit the image"},
}

// explain says in words what EC2 answered. Trying again cannot mend what people have to correct: that is a refusal.
// All else, such as a lack of capacity, limits and throttling, is an error that is tried again.
func (a *account) explain(what string, err error) error {
	if err == nil || plugin.IsRefused(err) {
		return a.maskOrNil(err)
	}
	var e smithy.APIError
	if !errors.As(err, &e) {
		return a.mask(fmt.Errorf("cannot %s in %s: %w", what, a.region, err))
	}
	provider, code, said := a.call.Provider.Name, e.ErrorCode(), brief(e.ErrorMessage())
	refuse := func(format string, args ...any) error {
		return a.mask(plugin.Refuse(fmt.Sprintf("cannot %s: ", what) + fmt.Sprintf(format, args...)))
	}
	switch code {
	case "AuthFailure", "InvalidClientTokenId", "UnrecognizedClientException", "InvalidAccessKeyId":
		return refuse("EC2 does not accept the access key of provider %s; correct its fields api_user and "+
			"api_password (%s)", provider, said)
	case "SignatureDoesNotMatch":
		return refuse("the secret does not belong to the access key of provider %s; correct its field api_password",
			provider)
	case "UnauthorizedOperation", "AccessDenied", "AccessDeniedException":
		return refuse("the account of provider %s (field api_user) lacks a right; give it those in "+
			"docs/cloud-providers.md (%s)", provider, said)
	case "OptInRequired":
		return refuse("the account of provider %s has not agreed to use this: %s", provider, said)
	case "OperationNotPermitted":
		return refuse("%s; if the instance is protected from deletion, lift that", said)
	case "RequestExpired":
		return a.mask(fmt.Errorf("cannot %s: the clock of this machine is wrong, so EC2 takes its requests for old "+
			"ones; set the clock", what))
	}
	if strings.HasPrefix(code, "InvalidAMIID") {
		return a.imageGone()
	}
	for _, w := range wrongField {
		if strings.HasPrefix(code, w.code) {
			return refuse("field %s of provider %s %s (%s)", w.field, provider, w.wrong, said)
		}
	}
	switch {
	case code == "Unsupported", strings.HasPrefix(code, "Invalid"), strings.HasPrefix(code, "Missing"),
		code == "UnknownParameter":
		return refuse("EC2 refuses the machine of hardware type %s (%s) and image type %s (%s) with provider %s: "+
			"%s (%s)",
			a.call.Node.HardwareType, a.call.Node.Flavor, a.call.Node.ImageType, a.call.Node.Image, provider, said,
			code)
	}
	return a.mask(fmt.Errorf("cannot %s in %s: %s (%s)", what, a.region, said, code))
}

func (a *account) maskOrNil(err error) error {
	if err == nil {
		return nil
	}
	return a.mask(err)
}

// imageGone is the refusal of an image that EC2 does not have.
func (a *account) imageGone() error {
	n := a.call.Node
	return plugin.Refuse(fmt.Sprintf("image %s of image type %s is not in %s, or not for the account of provider %s; "+
		"give the image type another image for this provider", n.Image, n.ImageType, a.region, a.call.Provider.Name))
}

// brief shortens what EC2 said. A missing right comes with a long code that only the account's owner can read.
func brief(said string) string {
	said, _, _ = strings.Cut(said, " Encoded authorization failure message")
	if r := []rune(said); len(r) > 500 {
		return string(r[:500]) + " …"
	}
	return said
}
