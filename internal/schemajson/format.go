package schemajson

// The format of "terraform providers schema -json", as far as a provider's own server knows it:
// https://developer.hashicorp.com/terraform/cli/commands/providers/schema

type document struct {
	FormatVersion string              `json:"format_version"`
	Schemas       map[string]provider `json:"provider_schemas"`
}

type provider struct {
	Provider           *schema              `json:"provider,omitempty"`
	Resources          map[string]*schema   `json:"resource_schemas,omitempty"`
	DataSources        map[string]*schema   `json:"data_source_schemas,omitempty"`
	EphemeralResources map[string]*schema   `json:"ephemeral_resource_schemas,omitempty"`
	ListResources      map[string]*schema   `json:"list_resource_schemas,omitempty"`
	Actions            map[string]*schema   `json:"action_schemas,omitempty"`
	Functions          map[string]*function `json:"functions,omitempty"`
	Identities         map[string]*identity `json:"resource_identity_schemas,omitempty"`
}

type schema struct {
	Version int64  `json:"version"`
	Block   *block `json:"block,omitempty"`
}

type block struct {
	Attributes      map[string]*attribute   `json:"attributes,omitempty"`
	Blocks          map[string]*nestedBlock `json:"block_types,omitempty"`
	Description     string                  `json:"description,omitempty"`
	DescriptionKind string                  `json:"description_kind,omitempty"`
	Deprecated      bool                    `json:"deprecated,omitempty"`
}

type nestedBlock struct {
	Nesting  string `json:"nesting_mode"`
	Block    *block `json:"block,omitempty"`
	MinItems int64  `json:"min_items,omitempty"`
	MaxItems int64  `json:"max_items,omitempty"`
}

type attribute struct {
	Type            any         `json:"type,omitempty"`
	NestedType      *nestedType `json:"nested_type,omitempty"`
	Description     string      `json:"description,omitempty"`
	DescriptionKind string      `json:"description_kind,omitempty"`
	Deprecated      bool        `json:"deprecated,omitempty"`
	Required        bool        `json:"required,omitempty"`
	Optional        bool        `json:"optional,omitempty"`
	Computed        bool        `json:"computed,omitempty"`
	Sensitive       bool        `json:"sensitive,omitempty"`
	WriteOnly       bool        `json:"write_only,omitempty"`
}

type nestedType struct {
	Attributes map[string]*attribute `json:"attributes,omitempty"`
	Nesting    string                `json:"nesting_mode"`
}

type function struct {
	Summary            string       `json:"summary,omitempty"`
	Description        string       `json:"description,omitempty"`
	DeprecationMessage string       `json:"deprecation_message,omitempty"`
	ReturnType         any          `json:"return_type"`
	Parameters         []*parameter `json:"parameters,omitempty"`
	VariadicParameter  *parameter   `json:"variadic_parameter,omitempty"`
}

type parameter struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	IsNullable  bool   `json:"is_nullable,omitempty"`
	Type        any    `json:"type"`
}

type identity struct {
	Version    int64                         `json:"version"`
	Attributes map[string]*identityAttribute `json:"attributes,omitempty"`
}

type identityAttribute struct {
	Type              any    `json:"type"`
	Description       string `json:"description,omitempty"`
	RequiredForImport bool   `json:"required_for_import,omitempty"`
	OptionalForImport bool   `json:"optional_for_import,omitempty"`
}
