/** The table field's name unless a deployment says otherwise. */
export const DEFAULT_TABLE_FIELD = 'computeTableName'
