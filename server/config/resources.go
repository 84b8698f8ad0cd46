package config

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"ordain.dev/ordain/internal/fault"
)

// Where the contents of plug-in resources are kept.
const (
	ResourcesFolder = "folder"
	ResourcesS3     = "s3"
	// ResourcesOff: there is no place that all server processes reach.
	ResourcesOff = ""
)

func resourceStore(c *Config, s string) error {
	if s != ResourcesFolder && s != ResourcesS3 {
		return fmt.Errorf("%.40q is neither folder nor s3", s)
	}
	c.ResourceStore = s
	return nil
}

func s3Endpoint(c *Config, s string) error {
	u, err := url.Parse(s)
	switch {
	case s == "":
		return nil
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || strings.Trim(u.Path, "/") != "" ||
		u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%q is not the address of a service, without a bucket", withoutUser(s))
	case u.User != nil:
		return fmt.Errorf("the address of %s holds credentials; set cluster.s3-access-key-file and "+
			"cluster.s3-secret-key-file", u.Host)
	}
	c.S3Endpoint = strings.TrimSuffix(s, "/")
	return nil
}

// resourceSize reads the limit of one resource. 1 GiB is what an archive may have when it is unpacked.
func resourceSize(c *Config, s string) error {
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil || n < 1024 || n > 1<<30 {
		return fmt.Errorf("%q is not a number of bytes from 1024 to 1073741824", s)
	}
	c.MaxResourceSize = n
	return nil
}

// checkResources checks that the options of plug-in resources fit together.
func (c *Config) checkResources() error {
	if c.ResourceStore == ResourcesFolder {
		if c.ResourceFolder == "" && !c.Alone() {
			c.ResourceStore = ResourcesOff // each process would have a folder of its own
		}
		return nil
	}
	for _, o := range []struct{ name, value string }{
		{"s3-endpoint", c.S3Endpoint}, {"s3-bucket", c.S3Bucket}, {"s3-access-key-file", c.S3AccessKey},
		{"s3-secret-key-file", c.S3SecretKey},
	} {
		if o.value == "" {
			return fault.New("config.Load", fault.Invalid, "the option cluster."+o.name+" is missing").
				Hint("with [cluster] resource-store = s3, set s3-endpoint, s3-bucket, s3-access-key-file and " +
					"s3-secret-key-file")
		}
	}
	return nil
}
