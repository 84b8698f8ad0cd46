package aws

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ordain.dev/ordain/internal/testing/tool"
	"ordain.dev/ordain/server/cluster/provisioner/cloudtest"
	"ordain.dev/ordain/server/cluster/provisioner/plugin"
)

// What people have to correct is refused, in words that name it.
func TestRefusals(t *testing.T) {
	t.Parallel()
	s := begin(t)
	for name, test := range map[string]struct {
		change func(*plugin.Call)
		fields map[string]any
		says   []string
	}{
		"unknown access key": {
			fields: map[string]any{"api_user": "AKIANOBODY"},
			says:   []string{"api_user", "our-cloud"},
		},
		"wrong secret": {
			fields: map[string]any{"api_password": "hunter2-hunter2"},
			says:   []string{"api_password"},
		},
		"no secret": {
			fields: map[string]any{"api_password": ""},
			says:   []string{"api_password", "is not set"},
		},
		"no such key pair": {fields: map[string]any{"ssh_keypair": "lost"}, says: []string{"ssh_keypair"}},
		"no such SSH key": {
			fields: map[string]any{"ssh_key_resource": "lost"},
			says:   []string{"ssh_key_resource", "team"},
		},
		"no groups":          {fields: map[string]any{"security_groups": nil}, says: []string{"security_groups"}},
		"subnet without ids": {fields: map[string]any{"subnet_id": "subnet-1"}, says: []string{"security_group_ids"}},
		"odd region":         {fields: map[string]any{"aws_region": "evil.example/"}, says: []string{"aws_region"}},
		"odd size": {
			fields: map[string]any{"aws_ebs_size": "much"},
			says:   []string{"aws_ebs_size", "65536"},
		},
		"odd switch": {
			fields: map[string]any{"dedicated_instance": "maybe"},
			says:   []string{"dedicated_instance"},
		},
		"password in address": {
			fields: map[string]any{"endpoint": "https://u:hunter2@ec2"},
			says:   []string{"endpoint"},
		},
		"a right is missing": {
			fields: map[string]any{"api_user": s.ec2.PoorKey, "api_password": s.ec2.PoorSecret},
			says:   []string{"lacks a right", "docs/cloud-providers.md"},
		},
		"image gone": {
			change: func(c *plugin.Call) { c.Node.Image = "ami-00000000" },
			says:   []string{"ami-00000000", "image type debian", "our-cloud"},
		},
		"image gone, with a size": {
			change: func(c *plugin.Call) { c.Node.Image = "ami-00000000" },
			fields: map[string]any{"aws_root_ebs_size": 20},
			says:   []string{"ami-00000000", "image type debian", "our-cloud"},
		},
		"no image": {
			change: func(c *plugin.Call) { c.Node.Image = "" }, says: []string{"image type debian", "our-cloud"},
		},
		"no such flavor": {
			change: func(c *plugin.Call) { c.Node.Flavor = "z9.huge" }, says: []string{"z9.huge", "small"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			fields := map[string]any{}
			for _, from := range []map[string]any{s.fields, test.fields} {
				for name, value := range from {
					fields[name] = value
				}
			}
			c := s.call("ordain-1")
			c.Provider.Fields = cloudtest.Fields(t, fields)
			if test.change != nil {
				test.change(&c)
			}
			_, err := s.plugin.Create(t.Context(), c)
			mustRefuse(t, err, test.says...)
			if secret, _ := fields["api_password"].(string); secret != "" && strings.Contains(err.Error(), secret) ||
				strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error tells a secret: %v", err)
			}
		})
	}
	if there := s.alive(); len(there) != 0 {
		t.Errorf("refused tasks left %+v", there)
	}
}

// What may pass is tried again, and what EC2 says never has a secret in it.
func TestErrorsThatMayPass(t *testing.T) {
	t.Parallel()
	s := begin(t)
	c := s.call("ordain-1")
	for _, test := range []struct {
		code   string
		status int
	}{
		{"InsufficientInstanceCapacity", http.StatusInternalServerError},
		{"RequestLimitExceeded", http.StatusServiceUnavailable},
		{"InstanceLimitExceeded", http.StatusBadRequest},
		{"VcpuLimitExceeded", http.StatusBadRequest},
	} {
		s.ec2.Fail("RunInstances", 3, test.status, test.code, "not now, "+s.ec2.Secret)
		_, err := s.plugin.Create(t.Context(), c)
		if plugin.IsRefused(err) {
			t.Errorf("%s is refused: %v", test.code, err)
		}
		mustSay(t, err, test.code, "not now")
		if strings.Contains(err.Error(), s.ec2.Secret) {
			t.Errorf("the error tells a secret: %v", err)
		}
		s.ec2.Forgive() // not every error is asked for three times
	}
	s.create(c)
	s.only()
}

// A throttled request is sent again by the SDK.
func TestThrottledOnce(t *testing.T) {
	t.Parallel()
	s := begin(t)
	s.ec2.Fail("RunInstances", 1, http.StatusServiceUnavailable, "RequestLimitExceeded", "slow down")
	s.create(s.call("ordain-1"))
	s.only()
}

// A machine that SSH does not reach is not confirmed: the time of the task ends, and the error says what was tried.
func TestSSHDoesNotAnswer(t *testing.T) {
	t.Parallel()
	s := begin(t)
	c := s.call("ordain-1")
	id := s.create(c)
	ctx, stop := context.WithCancelCause(t.Context())
	over := errors.New("the time of the task is over")
	tries := 0
	s.plugin.Reach = func(context.Context, plugin.Call, string) ([]string, error) {
		if tries++; tries == 3 {
			stop(over)
		}
		return nil, errors.New("connection refused")
	}
	_, err := s.plugin.Confirm(ctx, c)
	if plugin.IsRefused(err) {
		t.Errorf("refused: %v", err)
	}
	mustSay(t, err, id, "connection refused", "port 22")
	s.plugin.Reach = func(context.Context, plugin.Call, string) ([]string, error) {
		return nil, plugin.Refuse("the machine does not accept the key")
	}
	_, err = s.plugin.Confirm(t.Context(), c)
	mustRefuse(t, err, "does not accept the key")
}

// Credentials, regions and addresses in the environment and in files of the machine do not count.
func TestTheEnvironmentDoesNotCount(t *testing.T) {
	tool.Heavy(t, "waits for what the client of EC2 repeats")
	dir := t.TempDir()
	profile := "[default]\naws_access_key_id = AKIAFILE\naws_secret_access_key = x\nregion = nowhere-1\n" +
		"endpoint_url = http://127.0.0.1:1\n"
	for _, name := range []string{"config", "credentials"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(profile), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "AKIAENV", "AWS_SECRET_ACCESS_KEY": "x", "AWS_SESSION_TOKEN": "x",
		"AWS_REGION":       "nowhere-1",
		"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_ENDPOINT_URL_EC2": "http://127.0.0.1:1",
		"AWS_CONFIG_FILE":                   filepath.Join(dir, "config"),
		"AWS_SHARED_CREDENTIALS_FILE":       filepath.Join(dir, "credentials"),
		"AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:1", "AWS_USE_FIPS_ENDPOINT": "true",
	} {
		t.Setenv(name, value)
	}
	s := begin(t)
	s.create(s.call("ordain-1"))
	s.only()
	s.fields["api_user"] = "AKIANOBODY"
	_, err := s.plugin.Create(t.Context(), s.call("ordain-2"))
	mustRefuse(t, err, "api_user")
}

// Every field reaches EC2.
func TestFieldsOfTheRequest(t *testing.T) {
	t.Parallel()
	s := begin(t)
	for name, value := range map[string]any{
		"subnet_id": "subnet-1", "security_group_ids": "sg-1, sg-2", "associate_public_ip": "true",
		"availability_zone": s.ec2.Region + "a", "iam_instance_profile": "web", "placement_group": "near",
		"aws_root_ebs_size": "40", "aws_root_ebs_delete_on_term": true, "dedicated_instance": true,
	} {
		s.fields[name] = value
	}
	s.ec2.Fail("RunInstances", 1, http.StatusBadRequest, "InvalidSubnetID.NotFound", "no subnet-1")
	_, err := s.plugin.Create(t.Context(), s.call("ordain-1"))
	mustRefuse(t, err, "subnet_id", "our-cloud")
	sent := s.ec2.Requests("RunInstances")[0]
	for name, want := range map[string]string{
		"NetworkInterface.1.SubnetId": "subnet-1", "NetworkInterface.1.SecurityGroupId.2": "sg-2",
		"NetworkInterface.1.AssociatePublicIpAddress": "true", "Placement.AvailabilityZone": s.ec2.Region + "a",
		"IamInstanceProfile.Name": "web", "Placement.GroupName": "near", "Placement.Tenancy": "dedicated",
		"BlockDeviceMapping.1.Ebs.VolumeSize": "40", "BlockDeviceMapping.1.Ebs.DeleteOnTermination": "true",
		"KeyName": "team", "TagSpecification.1.Tag.1.Value": "ordain-1", "MaxCount": "1",
	} {
		if sent.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, sent.Get(name), want)
		}
	}
}

// Codes of EC2 that moto does not know name their field, too.
func TestCodesNameTheirField(t *testing.T) {
	t.Parallel()
	s := begin(t)
	for code, field := range map[string]string{
		"InvalidGroup.NotFound": "security_groups", "InvalidPlacementGroup.Unknown": "placement_group",
		"VPCIdNotSpecified": "subnet_id", "InvalidBlockDeviceMapping": "aws_root_ebs_size",
	} {
		s.ec2.Fail("RunInstances", 1, http.StatusBadRequest, code, "no")
		_, err := s.plugin.Create(t.Context(), s.call("ordain-1"))
		mustRefuse(t, err, "field "+field, "our-cloud")
	}
}
