package diag

import (
	"slices"
	"strings"
)

// codes are the stable codes of errors, by the reference's class without its
// module. E00 is reading, E01 names and definitions, E02 values and
// assignments, E03 plug-ins, E04 modules and projects, E05 export, E09 Ordain
// itself. Every code has a page in docs/errors.
var codes = map[string]string{
	"ParserException":        "E0001",
	"InvalidNamespaceAccess": "E0002",
	"HyphenException":        "E0003",
	"ParserWarning":          "W0001",

	"TypeNotFoundException":                       "E0101",
	"MissingImportException":                      "E0102",
	"AmbiguousTypeException":                      "E0103",
	"DuplicateException":                          "E0104",
	"CycleException":                              "E0105",
	"TypingException":                             "E0106",
	"InvalidTypeAnnotation":                       "E0107",
	"DirectExecuteException":                      "E0108",
	"IndexException":                              "E0109",
	"IndexAttributeMissingInConstructorException": "E0110",
	"IndexCollisionException":                     "E0111",
	"NotFoundException":                           "E0112",
	"CompilerException":                           "E0199",

	"RuntimeException":             "E0201",
	"DoubleSetException":           "E0202",
	"AttributeException":           "E0203",
	"UnsetException":               "E0204",
	"OptionalValueException":       "E0205",
	"ModifiedAfterFreezeException": "E0206",
	"KeyException":                 "E0207",
	"MultiException":               "E0208",
	"UnexpectedReference":          "E0209",
	"ZeroDivisionError":            "E0218",
	"OverflowError":                "E0219",
	"InvalidCompilerState":         "E0220",

	"PluginTypeException":        "E0301",
	"ExplicitPluginException":    "E0302",
	"ExternalException":          "E0303",
	"WrappingRuntimeException":   "E0304",
	"DataClassException":         "E0305",
	"DataClassMismatchException": "E0306",
	"PluginException":            "E0307",

	"ModuleLoadingException":               "E0401",
	"ModuleNotFoundException":              "E0402",
	"InvalidModuleException":               "E0403",
	"ModuleMetadataFileNotFound":           "E0404",
	"ModuleV2InV1PathException":            "E0405",
	"InvalidMetadata":                      "E0406",
	"ProjectNotFoundException":             "E0407",
	"FileNotFoundError":                    "E0408",
	"UnicodeDecodeError":                   "E0409",
	"PluginModuleLoadException":            "E0410",
	"InvalidRelationPrecedenceRuleError":   "E0411",
	"CycleInRelationPrecedencePolicyError": "E0412",

	"ResourceException":        "E0501",
	"DependencyCycleException": "E0502",

	"InternalError": "E0901",
	"Error":         "E0902",
	"UsageError":    "E0903",

	"VariableShadowWarning":    "W0101",
	"TypeDeprecationWarning":   "W0102",
	"CompilerRuntimeWarning":   "W0103",
	"PluginDeprecationWarning": "W0301",
	"ModuleDeprecationWarning": "W0401",
	"InmantaWarning":           "W0402",
}

// These errors have codes of their own, though the reference has one class for them.
const (
	WrongType        = "E0210" // a value does not belong to a type
	NoImplementation = "E0211" // an instance has no implementation
	Arity            = "E0212" // more instances than a relation takes
	NoBoolean        = "E0213" // a condition is not a boolean
	NoCast           = "E0214" // a value cannot be converted
	NeverRan         = "E0215" // statements wait for something that never happens
	WrongArguments   = "E0216" // a call does not fit the plug-in
	WrongOperand     = "E0217" // an operator or a loop got values of another type

	ExportPython = "E0503" // Python code of a module failed during the export
	ExportWorker = "E0504" // the worker or a file failed
)

// Codes lists all codes, in order.
func Codes() []string {
	list := []string{
		"E0000",
		"W0000",
		WrongType,
		NoImplementation,
		Arity,
		NoBoolean,
		NoCast,
		NeverRan,
		WrongArguments,
		WrongOperand,
		ExportPython,
		ExportWorker,
	}
	for _, code := range codes {
		list = append(list, code)
	}
	slices.Sort(list)
	return list
}

// Code returns the stable code for a kind, with or without its module: E0000 or W0000 for a kind that
// has none.
func Code(kind string) string {
	name := kind[strings.LastIndexByte(kind, '.')+1:]
	if code, ok := codes[name]; ok {
		return code
	}
	if strings.HasSuffix(name, "Warning") {
		return "W0000"
	}
	return "E0000"
}
